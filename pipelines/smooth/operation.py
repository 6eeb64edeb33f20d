"""`slackwater smooth`: better estimates of published counts and sums, from published numbers alone.

It reads only the public folder of a release, so everyone who has that folder can do it, and it costs no privacy.
Smoothed rows of published windows do not change when later windows are published.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.common.arguments import SpecLike, refuse_ending, refuse_inside
from pipelines.common.value import Value
from pipelines.published.release import asked, naming, published
from pipelines.spec.times import people_time
from privacy.counted import counted
from transforms.aggregation.queries import Query
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.shown_tables import write_shown
from transforms.release.marginal_tables import marginal_kind, marginals_of
from transforms.release.quantile_tables import QUANTILE, quantile_kind
from transforms.release.range_tables import range_kind
from transforms.release.smoothed_tables import smoothed_table, why_not


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothed(Value):
    """Published counts and sums with smoothed estimates next to them.

    Attributes:
        release: Name of the release.
        until: End of the last published window.
        table: The columns that `transforms.release.smoothed_tables` describes.
        file: Path of the file that was written; None: no file.
        left_out: For each kind of number that is not smoothed `query`, `kind` and `why`.
    """

    release: str
    until: str
    table: pa.Table = field(repr=False)
    file: str | None
    left_out: tuple[dict[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater smooth --json`."""
        return {
            "release": self.release,
            "until": self.until,
            "file": self.file,
            "rows": self.table.num_rows,
            "left_out": [*self.left_out],
        }

    def text(self) -> str:
        """Return the text that `slackwater smooth` prints."""
        where = "" if self.file is None else f" in {self.file}"
        lines = [
            f"{self.release}: {counted(self.table.num_rows, 'number')} up to {people_time(self.until)}{where}",
            "They are computed from published numbers and cost no privacy. The intervals from ci_low to ci_high are "
            "valid for all data; those from model_low to model_high only if the data follow the model.",
            *(f"  left out: {one['query']}, {one['kind']}: {one['why']}" for one in self.left_out),
        ]
        return "\n".join(lines)


def smooth(spec: SpecLike, *, output: str | Path | None = None, query: Sequence[str] | None = None) -> Smoothed:
    """Estimate published counts and sums more exactly, from the public side alone. Costs no privacy.

    Args:
        spec: The path of a spec, what `load` returns, or the path of the public folder of a release.
        output: Write the table to this file, which ends in .parquet, .csv, .jsonl, .md or .txt.
        query: Names of queries. None: all.

    Raises:
        SpecError: There is no such query, none of their numbers can be smoothed, or the file cannot be there.
        RefusedError: Nothing is published there, or a file is not what the manifest says.
    """
    file = None if output is None else str(output)
    refuse_ending("output", file)
    release = published(spec)
    refuse_inside("output", file, release.folder)
    refuse_unreachable([file])
    tables, left_out = [], []
    for one in asked(release.spec, query):
        reasons = {series: why_not(one, series, release.plan) for series in one.publish}
        left_out += [{"query": one.name, "kind": series.kind, "why": why} for series, why in reasons.items() if why]
        left_out += [{"query": one.name, "kind": kind, "why": _MADE_OF_CELLS} for kind in _made_of_cells(one)]
        wanted = [series for series, why in reasons.items() if why is None]
        if wanted:
            estimates = release.estimates(one)
            estimates = estimates.select([name for name in estimates.column_names if name != QUANTILE])
            with naming(release.folder):
                tables += [
                    smoothed_table(estimates, one, series, release.plan, windows=release.bounds) for series in wanted
                ]
    if not tables:
        raise SpecError(f"{release.folder}: nothing to smooth: {left_out[0]['query']}: {left_out[0]['why']}")
    table = pa.concat_tables(tables)
    if file is not None:
        write_shown(table, file, local=release.local)
    return Smoothed(release=release.spec.release, until=release.until, table=table, file=file, left_out=tuple(left_out))


_MADE_OF_CELLS = "made from the cells' numbers, not measured; smooth those"


def _made_of_cells(query: Query) -> list[str]:
    """Return the kinds of published rows that are not a series of cells."""
    kinds = ((quantile_kind, query.quantiles), (range_kind, query.ranges), (marginal_kind, marginals_of(query)))
    made = [kind for kind, asked in kinds if asked]
    return list(dict.fromkeys(kind(series) for kind in made for series in query.publish))
