"""Where the changelog lies and what its columns mean, as the spec says it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The files of a changelog and the roles of their columns.

    Attributes:
        format: one of transforms.sources.formats.table.
        paths: globs, local or of any of Beam's file systems (`gs://`), or topics
            (`transforms.sources.files.topic_segments`); for snapshots with the date's place in them.
        entry: the column that holds an entry's key; of the states in formats with envelopes.
        time: the column that holds the time of a change; None where the format says it itself.
        before: prefix or struct column of the state before; None if files hold new values only.
        after: prefix or struct column of the state after; None if its columns stand under their own names.
        forms: (side, `struct` or `prefix`) where the name alone does not say which it is; and in JSON lines
            (`owner`, `states` or `mutation`) where it is not of the states if these have a name, else of the mutation.
        order: columns that order changes of one time, most significant first; integers or strings.
        owner: the column that names the privacy unit, of the mutation or of the state.
        timezone: IANA name of the zone of times without one; None if there must be none.
        types: (column, kind) where the kind of a column is not to be inferred; kinds as in `transforms.common.kinds`.
        nulls: texts that are null in CSV, in quotes or not, beside an empty cell without quotes.
        every: how far apart snapshots are, in microseconds; None for other formats.
        kafka: path of the settings of Kafka's client, for paths that are topics; every worker reads it.
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
    every: int | None = None
    kafka: str | None = None

    def __post_init__(self) -> None:
        if not self.paths:
            raise ValueError("paths=() names no file; give one path or glob at least")
