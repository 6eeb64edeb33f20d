"""`slackwater smooth`: published counts and sums with better guesses beside them, made from what is published alone.

It reads the public folder of a release and nothing else, so anyone can do it who has that folder, and it costs no
privacy. Rows of windows that are published stay as they are when later ones are.
"""

import argparse
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.reports.published import asked, naming, published
from pipelines.spec.paths import within
from privacy.counted import counted
from transforms.aggregation.queries import Query
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.shown_tables import refuse_ending, write_shown
from transforms.release.quantile_tables import QUANTILE, quantile_kind
from transforms.release.range_tables import range_kind
from transforms.release.smoothed_tables import smoothed_table, why_not


def smooth(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "smooth")
    output = arguments.output
    refuse_ending(output)
    release = published(arguments.spec)
    public = release.folder
    if within(output, public):
        raise SpecError(f"-o {output}: lies in the public folder, which holds what is published and nothing else")
    refuse_unreachable([output])
    tables, left_out = [], []
    for query in asked(release.spec, arguments.query):
        reasons = {series: why_not(query, series, release.plan) for series in query.publish}
        left_out += [
            {"query": query.name, "kind": series.kind, "why": why} for series, why in reasons.items() if why is not None
        ]
        left_out += [{"query": query.name, "kind": kind, "why": _MADE_OF_CELLS} for kind in _made_of_cells(query)]
        wanted = [series for series, why in reasons.items() if why is None]
        if wanted:
            estimates = release.estimates(query)
            estimates = estimates.select([name for name in estimates.column_names if name != QUANTILE])
            with naming(public):
                tables += [
                    smoothed_table(estimates, query, series, release.plan, windows=release.bounds) for series in wanted
                ]
    if not tables:
        raise SpecError(f"{public}: nothing to smooth: {left_out[0]['query']}: {left_out[0]['why']}")
    smoothed = pa.concat_tables(tables)
    write_shown(smoothed, output, local=release.local)
    document = {
        "release": release.spec.release,
        "until": release.until,
        "file": output,
        "rows": smoothed.num_rows,
        "left_out": left_out,
    }
    return document, _text(document)


_MADE_OF_CELLS = "made from the cells' numbers, not measured; smooth those"


def _made_of_cells(query: Query) -> list[str]:
    """Kinds of published rows that are no series of cells."""
    made = [*([quantile_kind] if query.quantiles else []), *([range_kind] if query.ranges else [])]
    return list(dict.fromkeys(kind(series) for kind in made for series in query.publish))


def _text(document: Mapping[str, Any]) -> str:
    lines = [
        f"{document['release']}: {counted(document['rows'], 'number')} up to {document['until']} in {document['file']}",
        "They are made from what is published, and cost no privacy. ci_low and ci_high hold the truth as often as they "
        "say, whatever the data do; model_low and model_high only if the truth moves as the model says.",
    ]
    lines += [f"  left out: {one['query']}, {one['kind']}: {one['why']}" for one in document["left_out"]]
    return "\n".join(lines)
