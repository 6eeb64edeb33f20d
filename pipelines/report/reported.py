"""The result of `slackwater report`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pyarrow as pa

from pipelines.common.value import Value
from pipelines.report.facts import Facts, StatedQuery, StatedSeries
from pipelines.report.parts import ALL_CELLS, ALL_FOUND
from pipelines.spec.times import people_time
from privacy.counted import counted
from transforms.common.shown_tables import html_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported(Value):
    """A page of published numbers.

    Attributes:
        release: Name of the release.
        file: Path of the page.
        signals: For each series of numbers the size of its noise, compared with the numbers.
        warnings: Numbers that are mostly noise.
        until: End of the last published window; None for sanitised records.
        standing_out: Numbers that stand out by more than the noise; empty for sanitised records.
        records: Number of sanitised records; None for a release of sums.
        facts: Everything that the page states about numbers; None for sanitised records.
        pages: Paths of the separate pages of queries, if the page was split.
    """

    release: str
    file: str
    signals: tuple[dict[str, Any], ...] = field(repr=False)
    warnings: tuple[str, ...]
    until: str | None = None
    standing_out: tuple[str, ...] = ()
    records: int | None = None
    facts: Facts | None = field(default=None, repr=False)
    pages: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater report --json`."""
        document = {"release": self.release, "file": self.file, "signals": [*self.signals]}
        if self.facts is not None:
            return {**self.facts.to_json(), **document, "pages": [*self.pages], "standing_out": [*self.standing_out]}
        return {**document, "records": self.records, "warnings": [*self.warnings]}

    def text(self) -> str:
        """Return the text that `slackwater report` prints."""
        if self.records is not None:
            what = f"estimates from {counted(self.records, 'sanitised record')}"
        else:
            what = f"all that is published up to {people_time(self.until or '')}"
        standing = [f"  stands out: {one}" for one in self.standing_out]
        warnings = [f"  warning: {one}" for one in self.warnings]
        return "\n".join([f"{self.release}: {what}, as a page in {self.file}", *standing, *warnings])

    def _repr_html_(self) -> str:
        said = f"<pre>{escape(self.text())}</pre>"
        if self.facts is None:
            return said
        finding = {found["query"] for found in self.facts.found}
        rows = [
            row
            for query, one in self.facts.series
            for row in _rows(query, one, of_all=ALL_FOUND if query.query in finding else ALL_CELLS)
        ]
        return f"{said}{html_of(pa.Table.from_pylist(rows), local=lambda moment: moment)}" if rows else said


def _rows(query: StatedQuery, series: StatedSeries, of_all: str) -> Iterator[dict[str, Any]]:
    """Yield the latest numbers of a series as rows of a table for notebooks."""
    for one in series.latest:
        cell = of_all if one.cell is None else ", ".join(one.cell.values())
        numbers = {"number": one.value, "95 % from": one.low, "to": one.high}
        yield {"query": query.label, "kind": series.kind, "window": series.window, "cell": cell, **numbers}
