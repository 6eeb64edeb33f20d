"""What would reduce the errors of a spec most, from plans of changed specs. Reads no data.

Each change is tried alone. It may protect less or say less, so the text names the change and leaves the choice to the
reader.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipelines.plan.variants import Content, Errors, errors_of
from pipelines.spec.document import read_document
from pipelines.spec.durations import duration_text, length_text
from pipelines.spec.load import Spec
from pipelines.spec.series import series_document, series_text
from pipelines.spec.times import moment_text
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Query
from transforms.common.dates import DAY
from transforms.common.errors import SpecError

SPAN = 14 * DAY
"""Length of the span that a change protects in place of everything."""

WORTH = 0.9
"""Changes are named if they leave at most this share of the error."""

NAMED = 3
"""Most changes that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A change of the spec, and what it does to errors.

    Attributes:
        change: The change in words.
        number: Name of the number whose error falls most.
        half_width: Its 95 % margin of error now; None for ratios.
        changed: The same with the change.
        share: Geometric mean over all numbers of the changed errors as shares of the present ones.
    """

    change: str
    number: str
    half_width: float | None
    changed: float | None
    share: float

    def text(self) -> str:
        """Return the change with its numbers."""
        if self.half_width is None or self.changed is None:
            return f"{self.change}: {self.share:.0%} of the entries are enough for the same error"
        return f"{self.change}: {self.number} ± {self.changed:.4g} instead of ± {self.half_width:.4g}"


def advice_of(spec: Spec, plan: Plan, windows: int, *, now: Errors, until: int | None) -> list[Advice]:
    """Return the changes that reduce errors most, the best one first. It plans the spec with each change.

    Args:
        spec: The spec.
        plan: Its plan.
        windows: Number of windows over which its errors are averaged.
        now: Its errors.
        until: Average errors over the windows up to this moment; None: as `horizon_of`.
    """
    content = read_document(spec.path).content
    found: list[Advice] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, spec.path.name)
        for change, tried in _changes(spec, content):
            with suppress(SpecError):  # the spec needs more changes than this one
                found += _advice(change, now, errors_of(tried, path, until))
        best = sorted((one for one in found if one.share <= WORTH), key=lambda one: one.share)[:NAMED]
        for place, query in enumerate(spec.queries):
            if len(best) <= NAMED and _has_separate_cells(query, plan, place):
                tried = deepcopy(content)
                tried["queries"][place].pop("by")
                with suppress(SpecError):
                    best += _total(query, plan, place, windows, errors_of(tried, path, until))
                break
    return best


def _has_separate_cells(query: Query, plan: Plan, place: int) -> bool:
    """Return whether the error of a sum of all cells is known, and each cell has its own noise."""
    separate = query.adaptive is None and not query.discovers and not plan.demands[place].axes
    return separate and query.cells > 1 and len(query.measure.components) == 1 and not query.measure.distinct


def _total(query: Query, plan: Plan, place: int, windows: int, alone: Errors) -> Iterator[Advice]:
    """Yield how much smaller the error of the last total is if the query has no cells.

    Args:
        query: The query.
        plan: Plan of the release.
        place: Place of the query.
        windows: Number of windows.
        alone: Errors of the spec without the cells of the query.
    """
    series = query.publish[0]
    name, numbers = f"{query.name}: {series_text(series_document(series, plan))}", len(series.ends(windows))
    changed = alone[name].get("half_width_last")
    widths = plan.of_series(place, series).total_errors(series, numbers, query.cells, []) if numbers else None
    if changed is None or widths is None:
        return
    total = float(widths[-1]) * plan.demands[place].measure.components[0].grid
    yield Advice(
        change=f"one cell instead of {query.cells:,} (says less)",
        number=f"total of {name.replace(': ', ', ')}",
        half_width=total,
        changed=changed,
        share=changed / total,
    )


def _advice(change: str, now: Errors, changed: Errors) -> Iterator[Advice]:
    """Yield the advice to make a change; nothing if no error can be compared."""
    shares = {
        name: _error(changed[name]) / before for name in now if name in changed and (before := _error(now[name])) > 0
    }
    shares = {name: share for name, share in shares.items() if math.isfinite(share) and share > 0}
    if shares:
        best = min(shares, key=lambda name: shares[name])
        yield Advice(
            change=change,
            number=best.replace(": ", ", "),
            half_width=now[best].get("half_width"),
            changed=changed[best].get("half_width"),
            share=math.exp(math.fsum(map(math.log, shares.values())) / len(shares)),
        )


def _error(number: Mapping[str, Any]) -> float:
    """Return the margin of error of a number, or for a ratio the entries that it needs; 0 if it is unknown."""
    return float(number.get("half_width") or number.get("entries") or 0.0)


def _changes(spec: Spec, content: Content) -> Iterator[tuple[str, Content]]:
    for change in (_bound, _windows, _span):
        tried = deepcopy(content)
        said = change(spec, tried)
        if said is not None:
            yield said, tried


def _bound(spec: Spec, content: Content) -> str | None:
    """Halve the largest number of changes of a unit."""
    constraint = content["privacy"].get("constraint", {})
    most = constraint.get("at_most") if isinstance(constraint, dict) else None
    if not isinstance(most, int) or most < 2:
        return None
    constraint["at_most"] = most // 2
    return f"at_most: {most // 2} instead of {most} (cuts off more)"


def _windows(spec: Spec, content: Content) -> str | None:
    """Take days in place of hours, or weeks in place of days."""
    schedule = spec.schedule
    longer = {DAY // 24: DAY, DAY: 7 * DAY}.get(schedule.every)
    if longer is None or schedule.calendar is not None:
        return None
    content["schedule"]["every"] = duration_text(longer)
    if schedule.until is not None:
        windows = (schedule.until - schedule.start) // longer
        if windows < 1:
            return None
        content["schedule"]["until"] = moment_text(schedule.start + windows * longer)
    return f"windows of {length_text(longer)} instead of {length_text(schedule.every)}"


def _span(spec: Spec, content: Content) -> str | None:
    """Protect a span in place of everything."""
    length = max(SPAN, spec.schedule.every)
    until = spec.schedule.until
    privacy = content["privacy"]
    if spec.privacy.protects.span is not None or spec.privacy.owner is not None or "states" in privacy:
        return None
    if until is not None and until - spec.schedule.start <= length:
        return None
    privacy.pop("constraint", None)
    privacy["protects"] = {"span": duration_text(length)}
    return f"protects: span of {length_text(length)} instead of everything (protects less)"


def advice_text(found: Sequence[Advice]) -> str:
    """Return the line that names changes; empty without any."""
    return f"Smaller errors: {'; '.join(one.text() for one in found)}." if found else ""
