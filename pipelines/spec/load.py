"""The spec of a release: read, checked and frozen.

`load` gives values that the rest of the program can trust: nothing is left on `auto` but what the planner settles
(strategies, and the mechanism where there is a delta), times are microseconds since the epoch (UTC), durations
are microseconds, and mappings whose order must not matter are sorted. The shape of the file and its rules are in the
modules beside this one.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from pipelines.spec.calendar import Calendar
from pipelines.spec.document import read_document
from pipelines.spec.durations import length_text
from pipelines.spec.errors import describe
from pipelines.spec.kinds import refuse_another
from pipelines.spec.models import ChangelogSection, FreshnessSection, OutputSection, SpecModel
from pipelines.spec.ordered import OrderedSection
from pipelines.spec.privacy import PrivacySection
from pipelines.spec.queries import PlainKind, QuantilesSection, QuerySection, RangesSection, SlidingSection, key_of
from pipelines.spec.rules import adaptive_of
from pipelines.spec.schedule import ScheduleSection
from pipelines.spec.strategies import Strategy, StrategySection
from pipelines.spec.times import now
from privacy.automaton import Bound
from privacy.cells.choice import CellChoice
from privacy.constraint import Constraint
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.make_plan import Split
from privacy.planning.promise import Promise
from privacy.protection import EVERYTHING, Protection
from privacy.series import Series
from privacy.strategies.choice import Choice
from transforms.aggregation.expression import Condition
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.common.sinks import DEFAULT, OutputFormat
from transforms.common.source import Source
from transforms.sources.formats.table import FORMATS
from transforms.sources.freshness import Freshness

SHRINK = 0.2
"""By so large a share of its rows may a snapshot be smaller than the one before, unless the spec says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changelog:
    """Where the mutations are, and what of them may be unusable.

    Attributes:
        source: with the privacy unit's column; relative paths start at the current folder.
        bad_rows: share of rows that may be unusable, at least 0 and below 1.
        shrink: share of the rows that a snapshot may have less than the one before; None for other formats.
        freshness: what says how far the source has come; None: the clock alone says when a window is over.
    """

    source: Source
    bad_rows: float = 0.0
    shrink: float | None = None
    freshness: Freshness | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Who is protected, how well, and what each may contribute.

    Attributes:
        unit: `entry`, or the column that names the owner.
        protects: all that a unit ever does, or whatever it does in a span of time.
        constraint: what is enforced; from `states` if the spec gives no constraint.
        mechanism: `auto`, for the planner to settle, only if delta is above 0.
        accounting: None only if the mechanism is `auto`: the planner takes what suits the mechanism.
        split: what the queries' shares of the budget follow: their weights, or equal errors relative to `expected`.
        adaptive_data: whether data may react to what is published.
        states: the state machine, each state with those that may follow it; None if not given.
        bound: what the state machine allows an entry; None without one.
    """

    unit: str
    epsilon: float
    delta: float
    constraint: Constraint
    mechanism: Literal["auto", Mechanism]
    accounting: Accounting | None
    protects: Protection = EVERYTHING
    split: Split = "weights"
    adaptive_data: bool = False
    states: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    bound: Bound | None = None

    @property
    def owner(self) -> str | None:
        """The column that names the owner; None if the unit is the entry."""
        return None if self.unit == "entry" else self.unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Windows of `every` microseconds from `start`, or those of a calendar; `until`, if given, is a window's end.

    Attributes:
        windows: how many there are; None without an end.
        calendar: what says where they begin and end; then `every` is what a plan counts as their length, and `start`
            and `until` are what is known today: what is committed stands (pipelines.epochs.calendar_bounds).
        slack: m windows in a row are at least m * every - slack long, as far as the calendar is looked ahead.
    """

    start: int
    every: int
    until: int | None = None
    windows: int | None = None
    calendar: Calendar | None = None
    slack: int = 0

    @property
    def length(self) -> str:
        """How long a window is, as people write it.

        >>> Schedule(start=0, every=86_400_000_000).length
        '1 day'
        """
        zone = "" if self.calendar is None else f" in {self.calendar.zone}"
        return length_text(self.every) + zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Two folders, neither inside the other, and the format of the public files.

    Attributes:
        tables: of BigQuery, `project.dataset.table`, by the side that is loaded there: estimates, and nodes or not.
    """

    public: str
    private: str
    format: OutputFormat = DEFAULT
    tables: tuple[tuple[Literal["estimates", "nodes"], str], ...] = ()

    @property
    def folders(self) -> tuple[str, str]:
        """Both, the private one first: without it nothing of the other can be understood."""
        return self.private, self.public


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One release.

    Attributes:
        path: the file it was read from, as given.
        base: the folder of that file.
        text: the file as it was read.
        sha256: of the content alone, whatever its comments, layout and order of keys.
    """

    release: str
    changelog: Changelog
    privacy: Privacy
    schedule: Schedule
    queries: tuple[Query, ...]
    output: Output
    path: Path
    base: Path
    text: str = field(compare=False, repr=False)
    sha256: str

    @property
    def promise(self) -> Promise:
        """Whom the release protects, from what, over which windows, and the bound that is enforced."""
        return Promise(
            constraint=self.privacy.constraint,
            window=self.schedule.every,
            windows=self.schedule.windows,
            owner=self.privacy.owner is not None,
            protects=self.privacy.protects,
            slack=self.schedule.slack,
        )


def load(path: str | Path) -> Spec:
    """Read a spec and check all of it that can be checked without the data.

    Args:
        path: of a YAML file.

    Raises:
        SpecError: one line for each problem, with file, line and key, in the order of the file.
    """
    path = Path(path)
    document = read_document(path)
    refuse_another(document, "sums")
    try:
        model = SpecModel.model_validate(document.content)
    except ValidationError as error:
        raise SpecError(describe(error, document, SpecModel)) from None
    privacy = _privacy(model.privacy, model.schedule)
    return Spec(
        release=model.release,
        changelog=changelog_of(model.changelog, owner=privacy.owner, every=model.schedule.every),
        privacy=privacy,
        schedule=_schedule(model.schedule),
        queries=tuple(
            _query(q, every=model.schedule.every, strategy=model.strategy, distance=model.privacy.distance)
            for q in model.queries
        ),
        output=_output(model.output),
        path=path,
        base=path.parent,
        text=document.text,
        sha256=_sha256(model),
    )


def changelog_of(section: ChangelogSection, *, owner: str | None, every: int | None) -> Changelog:
    """What a section says.

    Args:
        owner: the column of the privacy unit, None for entries.
        every: how far apart snapshots are if the section does not say it.
    """
    snapshots = FORMATS[section.format].snapshots
    source = Source(
        format=section.format,
        paths=tuple(section.path),
        entry=section.entry,
        time=section.time,
        before=section.name("before"),
        after=section.name("after"),
        forms=section.forms,
        order=tuple(section.order),
        owner=owner,
        timezone=section.timezone,
        types=tuple(sorted(section.types.items())),
        nulls=tuple(sorted(set(section.nulls or ()))),
        every=None if not snapshots else every if section.every is None else section.every,
        kafka=section.kafka,
    )
    shrink = None if not snapshots else SHRINK if section.shrink is None else section.shrink
    return Changelog(source=source, bad_rows=section.bad_rows, shrink=shrink, freshness=_freshness(section))


def _freshness(section: ChangelogSection) -> Freshness | None:
    rule = section.freshness
    if not isinstance(rule, FreshnessSection):
        return None if rule is None else Freshness(by=rule)
    if rule.file is not None:
        return Freshness(by="file", path=rule.file)
    return Freshness(by="heartbeat", path=rule.heartbeat or "", settings=section.kafka)


def _privacy(section: PrivacySection, schedule: ScheduleSection) -> Privacy:
    states = section.states
    return Privacy(
        unit=section.unit,
        epsilon=section.epsilon,
        delta=section.delta,
        protects=section.protection,
        constraint=section.enforced(schedule.every, schedule.slack),
        mechanism=section.settled_mechanism,
        accounting=section.composition,
        split=section.split,
        adaptive_data=section.adaptive_data,
        states=None if states is None else tuple((s, tuple(states[s])) for s in sorted(states)),
        bound=section.bound(),
    )


def _schedule(section: ScheduleSection) -> Schedule:
    bounds, windows = section.bounds(now()), section.windows
    return Schedule(
        start=bounds.start,
        every=section.every,
        until=None if windows is None else bounds.end(windows),
        windows=windows,
        calendar=section.calendar,
        slack=section.slack,
    )


def _output(section: OutputSection) -> Output:
    tables: list[tuple[Literal["estimates", "nodes"], str]] = []
    if section.bigquery is not None:
        tables.append(("estimates", section.bigquery.estimates))
        if section.bigquery.nodes is not None:
            tables.append(("nodes", section.bigquery.nodes))
    return Output(public=section.public, private=section.private, format=section.format, tables=tuple(tables))


def _query(section: QuerySection, *, every: int, strategy: Strategy, distance: Mapping[str, Decimal | int]) -> Query:
    """On the plain grid; keys in the order of their names, each with its cells in the order of the spec."""
    return Query(
        name=section.name,
        measure=section.measure.measure(),
        column=section.measure.column,
        invalid=section.measure.invalid,
        where=None if section.where is None else Condition.parse(section.where),
        by=tuple((key, key_of(section.by[key])) for key in sorted(section.by)),
        publish=tuple(
            _series(number, every)
            for number in section.publish
            if not isinstance(number, QuantilesSection | RangesSection)
        ),
        quantiles=section.quantiles,
        ranges=section.ranges,
        weight=section.weight,
        expected=section.expected,
        consistent=section.consistent,
        strategy=_choice(section, strategy if section.strategy is None else section.strategy),
        over=_over(section),
        apart=_apart(section, distance),
        adaptive=None if (adaptive := adaptive_of(section, strategy)) is None else adaptive.choice(every),
    )


def _over(section: QuerySection) -> CellChoice:
    """What is asked of the cells; where ranges are published, to be near as single cells are."""
    listed = []
    for box in section.ranges:
        cells = iter(box)
        keys = (section.by[name] for name in sorted(section.by))
        listed.append(tuple(next(cells) if isinstance(key, OrderedSection) else None for key in keys))
    if section.over is not None:
        return section.over.choice(tuple(listed))
    return CellChoice(workload="listed", listed=tuple(listed)) if listed else CellChoice()


def _apart(section: QuerySection, distance: Mapping[str, Decimal | int]) -> tuple[int, ...]:
    """How many cells apart units are that are near each other, along each key."""
    if not distance:
        return ()
    keys = ((section.by[name], distance.get(name)) for name in sorted(section.by))
    return tuple(key.near(far) or 0 if isinstance(key, OrderedSection) and far is not None else 0 for key, far in keys)


def _series(number: PlainKind | SlidingSection, every: int) -> Series:
    if isinstance(number, str):
        return Series(kind=number)
    step = every if number.every is None else number.every
    return Series(kind="sliding", width=number.sliding // every, every=step // every)


def _choice(section: QuerySection, strategy: Strategy) -> Choice:
    if isinstance(strategy, StrategySection):
        return Choice() if strategy.adaptive is not None else strategy.choice()
    return Choice(name="disjoint" if strategy == "sliding" and not section.slides else strategy)


def _sha256(model: SpecModel) -> str:
    """SHA-256 of the checked values and not of the text; defaults count as if they were written.

    Keys that do not change what is published or protected are left out, so that they can be changed during a release:
    when bad input stops a run, when a window is published, where passwords are, which tables files are loaded into.
    """
    left_out = {"changelog": {"bad_rows", "shrink", "kafka", "freshness"}, "output": {"bigquery"}}
    content = json.dumps(model.model_dump(exclude=left_out), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()
