"""The arguments of `slackwater report`."""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, or of the public folder of its release.")
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        default="report.html",
        help="Write the page to FILE, which ends in .html. Default: %(default)s.",
    )
    parser.add_argument(
        "--split",
        action="store_true",
        help="Write the charts and tables of each query to a separate page next to FILE, for large releases.",
    )
    parser.add_argument(
        "--outline",
        metavar="GEOJSON",
        help="Draw the lines of a GeoJSON file over maps of longitude and latitude. They become part of the page.",
    )
