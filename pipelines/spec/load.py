"""The spec of a release: read, checked and frozen.

`load` returns values that the rest of the program can trust. Only what the planner decides is left on `auto`:
strategies, and the mechanism if there is a delta. Times are microseconds since the epoch (UTC), durations are
microseconds, and mappings whose order must not matter are sorted. The other modules of this package define the shape of
the file and its rules.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from pipelines.spec.calendar import Calendar
from pipelines.spec.changelog import ChangelogSection
from pipelines.spec.document import read_document
from pipelines.spec.durations import length_text
from pipelines.spec.errors import describe
from pipelines.spec.kinds import refuse_another
from pipelines.spec.models import OutputSection, SpecModel
from pipelines.spec.privacy import PrivacySection
from pipelines.spec.query_of import query_of
from pipelines.spec.schedule import ScheduleSection
from pipelines.spec.sinks import Loaded
from pipelines.spec.times import MICROSECOND, now
from privacy.automaton import Bound
from privacy.constraint import Constraint
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.make_plan import BudgetSplit
from privacy.planning.promise import Promise
from privacy.protection import EVERYTHING, Protection
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.common.output_formats import DEFAULT
from transforms.common.source import Source
from transforms.common.zones import zone_of
from transforms.sources.formats.table import FORMATS
from transforms.sources.freshness import Freshness

SHRINK = 0.2
"""Default of the largest share of its rows that a snapshot may have lost since the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changelog:
    """Where the mutations are, and how many of them may be unusable.

    Attributes:
        source: The files and their columns, with the privacy unit's column. Relative paths start at the current folder.
        bad_rows: Largest share of rows that may be unusable, at least 0 and below 1.
        shrink: Largest share of its rows that a snapshot may have lost since the one before; None for other formats.
        freshness: Rule for the progress of the source; None: the clock alone decides when a window is over.
    """

    source: Source
    bad_rows: float = 0.0
    shrink: float | None = None
    freshness: Freshness | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Privacy unit, protection and contribution bound.

    Attributes:
        unit: `entry`, or the column that names the owner.
        epsilon, delta: Privacy budget of the whole release.
        protects: Everything that a unit ever does, or everything that it does in a span of time.
        constraint: The contribution bound that is enforced; from `states` if the spec gives no constraint.
        mechanism: Kind of noise; `auto`, which the planner decides, only if delta is above 0.
        accounting: How privacy parameters are composed. None only if the mechanism is `auto`: the planner takes the
            accounting that suits the mechanism it chooses.
        split: How the budget is shared: by the weights of queries, or for equal errors relative to `expected`.
        adaptive_data: Whether data may react to published numbers.
        states: The state machine, each state with the states that may follow it; None if not given.
        bound: Most changes that the state machine allows an entry; None without a state machine.
    """

    unit: str
    epsilon: float
    delta: float
    constraint: Constraint
    mechanism: Literal["auto", Mechanism]
    accounting: Accounting | None
    protects: Protection = EVERYTHING
    split: BudgetSplit = "weights"
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
        windows: Number of windows; None without an end.
        calendar: The calendar by which windows begin and end; None: all have the same length. With a calendar, `every`
            is the length that a plan counts, and `start` and `until` are computed from today's time zones. Committed
            windows keep their ends (pipelines.epochs.calendar_bounds).
        zone: The zone in which the spec states the start; that of a calendar is its own.
        slack: Any m consecutive windows are at least m * every - slack long, in microseconds, as far ahead as the
            calendar is computed.
    """

    start: int
    every: int
    until: int | None = None
    windows: int | None = None
    calendar: Calendar | None = None
    zone: tzinfo = field(default=UTC, compare=False)
    slack: int = 0

    @property
    def clocks(self) -> str:
        """Clocks by which pages state times, in words.

        >>> Schedule(start=0, every=86_400_000_000).clocks
        'UTC'
        """
        return str(self.zone) if self.calendar is None else f"the time of {self.calendar.zone}"

    def local(self, moment: int) -> int:
        """Return the time that clocks of the schedule's zone show at a moment, in microseconds as if it were UTC."""
        zone = self.zone if self.calendar is None else zone_of(self.calendar.zone)
        shown = (datetime.fromtimestamp(0, UTC) + moment * MICROSECOND).astimezone(zone)
        return moment + (shown.utcoffset() or timedelta(0)) // MICROSECOND

    @property
    def length(self) -> str:
        """Length of a window, in words.

        >>> Schedule(start=0, every=86_400_000_000).length
        '1 day'
        """
        zone = "" if self.calendar is None else f" in {self.calendar.zone}"
        return length_text(self.every) + zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Two folders, neither inside the other, and the format of the public files.

    Attributes:
        tables: Tables of sinks, which the public files are also loaded into.
        witness: Path outside both folders at which commits are recorded; None: nowhere.
        latest: Format of the tables in `latest` of the public folder; None: no tables.
        report: Path of the page that each run writes again; None: no page.
    """

    public: str
    private: str
    format: str = DEFAULT
    tables: tuple[Loaded, ...] = ()
    witness: str | None = None
    latest: str | None = None
    report: str | None = None

    @property
    def folders(self) -> tuple[str, str]:
        """Both folders, the private one first, because the public one depends on it."""
        return self.private, self.public

    @property
    def places(self) -> tuple[str, ...]:
        """All paths that a run writes."""
        return self.folders if self.witness is None else (*self.folders, self.witness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One release.

    Attributes:
        path: Path of the file, as given.
        base: Folder of the file.
        text: Text of the file as it was read.
        sha256: Digest of the content alone; comments, layout and the order of keys do not change it.
        about: Texts of the section `about` by their keys; the digest does not depend on them.
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
    about: tuple[tuple[str, str], ...] = ()

    @property
    def promise(self) -> Promise:
        """The privacy unit, its protection, the windows, and the contribution bound that is enforced."""
        return Promise(
            constraint=self.privacy.constraint,
            window=self.schedule.every,
            windows=self.schedule.windows,
            owner=self.privacy.owner is not None,
            protects=self.privacy.protects,
            slack=self.schedule.slack,
        )


def load(path: str | Path) -> Spec:
    """Read a spec and check everything that can be checked without the data.

    Args:
        path: Path of a YAML file.

    Raises:
        SpecError: The spec is wrong; one line for each problem, with file, line and key, in the order of the file.
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
            query_of(q, every=model.schedule.every, strategy=model.strategy, distance=model.privacy.distance)
            for q in model.queries
        ),
        output=_output(model.output),
        path=path,
        base=path.parent,
        text=document.text,
        sha256=model.sha256(),
        about=() if model.about is None else model.about.texts,
    )


def changelog_of(section: ChangelogSection, *, owner: str | None, every: int | None) -> Changelog:
    """Return the changelog that a section describes.

    Args:
        section: The checked section of the spec.
        owner: The column of the privacy unit; None if the unit is the entry.
        every: Time between snapshots in microseconds, if the section does not give it.
    """
    snapshots = FORMATS[section.format].snapshots
    source = Source(
        format=section.format,
        paths=tuple(section.path),
        entry=section.entry,
        time=section.time or section.from_,
        until=section.to,
        expires=section.expires,
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
        deleted=next(((column, tuple(marks)) for column, marks in (section.deleted or {}).items()), None),
    )
    shrink = None if not snapshots else SHRINK if section.shrink is None else section.shrink
    return Changelog(source=source, bad_rows=section.bad_rows, shrink=shrink, freshness=_freshness(section))


def _freshness(section: ChangelogSection) -> Freshness | None:
    rule = section.told
    if rule is None:
        return None if section.freshness is None else Freshness(by="newer_file")
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
        zone=(section.start.tzinfo if isinstance(section.start, datetime) else None) or UTC,
        slack=section.slack,
    )


def _output(section: OutputSection) -> Output:
    tables = tuple(table for name, sink in section.sinks.items() for table in sink.tables(name))
    return Output(
        public=section.public,
        private=section.private,
        format=section.format,
        tables=tables,
        witness=section.witness,
        latest=section.latest,
        report=section.report,
    )
