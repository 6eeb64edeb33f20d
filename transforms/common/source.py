"""Location of the changelog and meaning of its columns, as in the spec."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Files of a changelog and roles of their columns.

    Attributes:
        format: Name of an entry of transforms.sources.formats.table.
        paths: Globs, local or of any of Beam's file systems (`gs://`), or topics
            (`transforms.sources.files.topic_segments`); for snapshots with a placeholder for the date.
        entry: Column that holds an entry's key; a column of the states in formats with envelopes.
        time: Column that holds the time of a change, or the start of an interval; None if the format has its own.
        until: Column that holds the end of an interval, null if it has none yet; None if each row is one change.
        deleted: Column, and the texts in it that mark deletions; None if only a row without a state is one.
        expires: For a log of events, microseconds from an entry's last event to the end of its state; else None.
        before: Prefix or struct column of the state before; None if files hold new values only.
        after: Prefix or struct column of the state after; None if its columns have no prefix.
        forms: (side, `struct` or `prefix`) if the name alone is ambiguous; and in JSON lines (`owner`, `states` or
            `mutation`) if the owner is not a column of the states (if these have a name, else of the mutation).
        order: Columns that order changes of one time, most significant first; integers or strings.
        owner: Column that names the privacy unit, of the mutation or of the state.
        timezone: IANA name of the zone of times without one; None if such times are unusable.
        types: (column, kind) of columns whose kind is not inferred; kinds as in `transforms.common.kinds`.
        nulls: Texts that are null in CSV, in quotes or not, in addition to an empty cell without quotes.
        every: Time between two snapshots, in microseconds; None for other formats.
        kafka: Path of the settings of Kafka's client, for paths that are topics; every worker reads it.
    """

    format: str
    paths: tuple[str, ...]
    entry: str
    time: str | None
    before: str | None
    after: str | None
    forms: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    owner: str | None = None
    timezone: str | None = None
    types: tuple[tuple[str, str], ...] = ()
    nulls: tuple[str, ...] = ()
    until: str | None = None
    expires: int | None = None
    every: int | None = None
    kafka: str | None = None
    deleted: tuple[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if not self.paths:
            raise ValueError("paths=() names no file; give one path or glob at least")
