"""A spec made ready for an audit: its copy, its columns, its stages and the setting of synthetic lives."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random

from pipelines.audit.files import copy_of, owner_place
from pipelines.audit.lives import Surroundings, background
from pipelines.audit.stages import Stages
from pipelines.audit.synthetic import cells_of, columns_of, corners_of
from pipelines.epochs.job import timeline_of
from pipelines.spec.load import Spec
from privacy.protection import Span
from transforms.aggregation.queries import Timeline

MOST_LEAVES = 2**17
"""Largest number of windows times cells in one release of an audit."""

KEYS = 16
"""Assumed number of synthetic keys that queries may find."""

FEWEST = 8
"""Fewest windows, if the schedule has as many."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Input of all layers.

    Attributes:
        spec: The copy.
        stages: Its stages.
        setting: Facts for synthetic lives.
    """

    spec: Spec
    stages: Stages
    setting: Surroundings


def prepared(spec: Spec, folder: Path, choose: Random) -> Prepared:
    """Return a spec ready for an audit, with all files under `folder`."""
    copy = copy_of(spec, folder)
    columns = columns_of(copy)
    timeline = _timeline(copy)
    source, owner = copy.changelog.source, copy.privacy.owner
    in_states = owner is not None and owner_place(copy) == "states"
    owned = owner if in_states else None
    truncates = source.format == "debezium"
    others = background(columns, timeline, owner, choose, truncates=False)
    stages = Stages.of(copy, columns, timeline, others)
    with_truncate = background(columns, timeline, owner, choose, truncates=truncates) if truncates else others
    setting = Surroundings(
        columns=columns,
        corners=tuple(corners_of(columns, choose, 8)),
        cells=tuple(cells_of(columns, {query.column for query in copy.queries})),
        promise=stages.job.plan.promise,
        timeline=timeline,
        owner=owner,
        in_states=owned is not None,
        expires=source.expires,
        ordered=source.before is not None or bool(source.order) or truncates,
        near=_near(copy.privacy.protects.span),
        others=tuple(with_truncate),
    )
    return Prepared(copy, stages, setting)


def _near(span: Span | None) -> tuple[tuple[str, float], ...]:
    return () if span is None else tuple((name, float(Decimal(far))) for name, far in span.near)


def _timeline(spec: Spec) -> Timeline:
    """Return the windows of an audit: all of the schedule, or as many as are worth their time."""
    cells = sum(KEYS * query.each if query.discovers else query.cells for query in spec.queries)
    far = spec.schedule.until or spec.schedule.start + 10_000 * spec.schedule.every
    whole = timeline_of(spec, far)
    span, wanted = spec.privacy.protects.span, 60
    if span is not None:
        wanted = max(wanted, 3 * span.boundaries(spec.schedule.every, spec.schedule.slack) + 4)
    most = max(FEWEST, MOST_LEAVES // cells)
    windows = min(whole.windows, most if spec.schedule.windows is not None else min(wanted, most))
    return Timeline(start=whole.start, every=whole.every, windows=windows, ends=whole.ends and whole.ends[:windows])
