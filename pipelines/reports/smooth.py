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
from pipelines.reports.published import Published, asked, naming
from pipelines.spec.paths import within
from privacy.counted import counted
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.shown_tables import refuse_ending, write_shown
from transforms.release.smoothed_tables import smoothed_table, why_not


def smooth(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "smooth")
    public, output = arguments.public, arguments.output
    refuse_ending(output)
    if within(output, public):
        raise SpecError(f"-o {output}: lies in the public folder, which holds what is published and nothing else")
    refuse_unreachable([public, output])
    release = Published(public)
    tables, left_out = [], []
    for query in asked(release.spec, arguments.query):
        reasons = {series: why_not(query, series, release.plan) for series in query.publish}
        left_out += [
            {"query": query.name, "kind": series.kind, "why": why} for series, why in reasons.items() if why is not None
        ]
        wanted = [series for series, why in reasons.items() if why is None]
        if wanted:
            estimates = release.estimates(query)
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


def _text(document: Mapping[str, Any]) -> str:
    lines = [
        f"{document['release']}: {counted(document['rows'], 'number')} up to {document['until']} in {document['file']}",
        "They are made from what is published, and cost no privacy. ci_low and ci_high hold the truth as often as they "
        "say, whatever the data do; model_low and model_high only if the truth moves as the model says.",
    ]
    lines += [f"  left out: {one['query']}, {one['kind']}: {one['why']}" for one in document["left_out"]]
    return "\n".join(lines)
