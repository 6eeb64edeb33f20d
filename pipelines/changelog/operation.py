"""`slackwater changelog`: convert a changelog to Parquet, check it, and suggest a spec."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from pipelines.changelog.check import NOTICE, check, check_text
from pipelines.changelog.convert import DIAGNOSTICS, convert
from pipelines.changelog.first_spec import in_flow, section_of
from pipelines.changelog.parquet_parts import FILE, ROW, SIDES, TIME
from pipelines.changelog.source import KEYS, ChangelogKeys, Named, named_by
from pipelines.changelog.suggest import suggested
from pipelines.common.arguments import SpecLike, path_of, refuse_unknown
from pipelines.common.errors import ArgumentError
from pipelines.common.parser import refuse_any
from pipelines.common.value import Value
from pipelines.epochs.failures import failure
from pipelines.epochs.flags import options_of
from pipelines.spec.paths import within
from privacy.counted import counted
from transforms.common.errors import SlackwaterError, SpecError
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.files.opening import open_random
from transforms.sources.formats.parquet import PARQUET
from transforms.sources.formats.table import FORMATS
from transforms.sources.inspection import inspect, state_columns

_TAKEN = re.compile(rf"entry|{TIME}|order_\d+|{'|'.join(SIDES)}|{FILE}|{ROW}")
_LEFT_BY_FAILURES = {DIAGNOSTICS, "failure.txt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedChangelog(Value):
    """A changelog that was converted and checked, and a spec to start from. Private, except for the spec.

    Attributes:
        folder: Folder of the Parquet files; None if only a spec was requested.
        files: Their paths.
        left_out: Columns whose type a state cannot have.
        shown: Whether document and text show the names of these columns. Names in CSV and JSON may be values.
        check: Exact counts, by their names.
        section: The section `changelog` of a spec that reads the files.
        spec: Text of a spec to start from; None if it was not requested.
    """

    folder: str | None = None
    files: tuple[str, ...] = field(default=(), repr=False)
    left_out: tuple[str, ...] = ()
    shown: bool = True
    check: dict[str, Any] = field(default_factory=dict, repr=False)
    section: dict[str, Any] = field(default_factory=dict, repr=False)
    spec: str | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater changelog --json`."""
        document: dict[str, Any] = {}
        if self.folder is not None:
            document = {
                "notice": NOTICE,
                "files": [*self.files],
                "left_out": [*self.left_out] if self.shown else len(self.left_out),
                "check": self.check,
                "changelog": self.section,
            }
        return document if self.spec is None else {**document, "spec": self.spec}

    def checked(self) -> str:
        """Return a summary of the written files and of the check, for the data controller."""
        lines = [
            f"{self.folder}: {counted(len(self.files), 'Parquet file')}",
            f"check, {NOTICE}",
            check_text(self.check),
        ]
        if self.left_out:
            names = f"{counted(len(self.left_out), 'column')} (`--suggest` shows the names)"
            names = ", ".join(self.left_out) if self.shown else names
            lines.append(f"left out, since a state cannot have their types: {names}")
        return "\n".join(lines)

    def text(self) -> str:
        """Return the text that `slackwater changelog` prints on stdout: the spec, if it was requested."""
        return f"{self.checked()}\nchangelog: {in_flow(self.section)}" if self.spec is None else self.spec


def changelog(
    source: SpecLike,
    *,
    output: str | Path | None = None,
    suggest: bool = False,
    bad_rows: float | None = None,
    options: Sequence[str] = (),
    **keys: Unpack[ChangelogKeys],
) -> CheckedChangelog:
    """Convert a changelog to Parquet and check it, or suggest a spec, or both. The output is private.

    Args:
        source: The path of a spec, or what `load` returns; or a glob of files, or a topic, which the keys describe.
        output: A new private folder for the Parquet files; None: only suggest.
        suggest: Whether to suggest a spec to start from.
        bad_rows: Share of rows that may be unusable, at least 0 and below 1. None: as the spec says, or 0.
        options: Beam's pipeline options as on the command line.
        keys: How the changelog is read, if `source` is not a spec.

    Raises:
        SpecError: A key is missing or wrong, or the folder cannot be used.
        InputError: The data cannot be used.
    """
    refuse_unknown(keys, ChangelogKeys)
    path, folder = path_of(source), None if output is None else str(output)
    given = {key: value for key, value in keys.items() if value is not None}
    if folder is None and not suggest:
        wanted = "missing; name a private folder for the Parquet changelog, or ask for --suggest alone"
        raise ArgumentError("output", wanted)
    if bad_rows is not None and not 0 <= bad_rows < 1:
        raise ArgumentError("bad_rows", f"expected a share of at least 0 and below 1, not {bad_rows}")
    with _keys_named(path):
        asked = named_by(path, given, bad_rows=bad_rows, output=folder, explored=suggest)
        if folder is None:
            refuse_any(options, "changelog --suggest")
            layout, _ = _layout(asked)
            return CheckedChangelog(spec=suggested(asked.source, layout))
        options_of(options)
        _refuse_folder(folder, asked)
        layout, left = _layout(asked)
    _make_private(folder)
    with _failures_kept(folder, "no changelog was written"):
        paths, diagnosis = convert(layout, folder=folder, flags=options, bad_rows=asked.bad_rows, shrink=asked.shrink)
        _close(folder)
    with _failures_kept(folder, "the changelog is written, but not checked"):
        made = _converted(paths[0], folder, layout)
        own = layout.owner is not None
        of_states = None if own else layout.source.owner
        found = check(paths, owner=made.owner if own else None, of_states=of_states, folder=folder)
    if layout.snapshots:
        found["out_of_order"] = None  # a change has no place there
    skipped = sum(rows for _, _, rows in diagnosis.skipped)
    found |= {"rows_read": diagnosis.rows, "rows_dead": diagnosis.dead, "rows_skipped": skipped}
    return CheckedChangelog(
        folder=folder,
        files=tuple(paths),
        left_out=left,
        shown=suggest or not FORMATS[layout.source.format].untyped,
        check=found,
        section=section_of(made),
        spec=suggested(made, layout) if suggest else None,
    )


def _layout(asked: Named) -> tuple[Layout, tuple[str, ...]]:
    """Return the layout with all columns of the states, and the columns that are left out."""
    columns, left = state_columns(asked.source)
    layout = inspect(asked.source, asked.numbers, columns, asked.times)
    if not layout.states:
        raise SpecError(f"{layout.files[0].path}: states have no columns there; see before and after")
    if layout.owner is not None and _TAKEN.fullmatch(layout.source.owner or ""):
        raise SpecError(f"privacy.unit: column {layout.source.owner!r} has a name of the new files; rename it")
    return layout, left


def _refuse_folder(folder: str, asked: Named) -> None:
    """Refuse a folder that is not empty, or that is public."""
    if asked.public is not None and within(folder, asked.public):
        raise ArgumentError("output", "lies inside output.public; a changelog is never public", folder)
    if "://" in folder:
        found = FileSystems.match([f"{folder.rstrip('/')}/*"])[0].metadata_list
        there = [file.path for file in found if f"/{DIAGNOSTICS}/" not in file.path]
    else:
        path = Path(folder)
        if any((above / "manifest.json").exists() for above in (path, *path.resolve().parents)):
            raise ArgumentError(
                "output", "lies inside the public folder of a release; a changelog is never public", folder
            )
        if path.exists() and not path.is_dir():
            raise ArgumentError("output", "is a file; name a new folder", folder)
        there = [one.name for one in path.iterdir() if one.name not in _LEFT_BY_FAILURES] if path.exists() else []
    if any(re.search(r"(^|/)part-\d{6}\.parquet$", name) for name in there):
        another = f"{folder.rstrip('/')}-{datetime.now(UTC):%Y-%m-%d}"
        raise ArgumentError(
            "output",
            "holds a copy already, and nothing is added to a copy; write new files to a separate folder, "
            f"such as {another}, and let the spec read both",
            folder,
        )
    if there:
        raise ArgumentError("output", "is not empty; name a new folder", folder)


def _make_private(folder: str) -> None:
    if "://" in folder:
        return
    try:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(folder).chmod(0o700)
    except OSError as error:
        raise ArgumentError("output", f"cannot be made ({error.strerror}); name another folder", folder) from None


def _close(folder: str) -> None:
    """Make the folder accessible to this account alone."""
    if "://" not in folder:
        for path in Path(folder).rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)


def _converted(path: str, folder: str, layout: Layout) -> Source:
    """Return the source that reads the new files."""
    with open_random(path) as stream:
        names = pq.read_schema(stream).names
    return Source(
        format=PARQUET.name,
        paths=(f"{folder.rstrip('/')}/*.parquet",),
        entry="entry",
        time=TIME,
        before="before" if "before" in names else None,
        after="after",
        order=tuple(name for name in names if re.fullmatch(r"order_\d+", name)),
        owner=layout.source.owner,
        expires=layout.source.expires,
    )


@contextmanager
def _keys_named(path: str) -> Iterator[None]:
    """Let errors name the arguments that replace a spec's keys."""
    try:
        yield
    except ArgumentError:
        raise
    except SpecError as error:
        if path.endswith((".yaml", ".yml")):
            raise
        raise ArgumentError.of_problems(map(_problem, str(error).splitlines())) from None


_KEY = re.compile(rf"(?<![\w./-])(?:changelog\.({'|'.join(KEYS)}|path)(?=[:; ,]|$)|privacy\.(unit)(?=:))")


def _problem(line: str) -> tuple[str, str]:
    """Return the parameter that a line about a spec concerns, and the text that follows its name.

    >>> _problem("changelog.path: no file matches; see changelog.format")
    ('source', ': no file matches; see --format')
    """
    about = _KEY.match(line)
    key = "" if about is None else (about[1] or about[2]).replace("path", "source")
    parameter = KEYS.get(key, key)
    rest = line if about is None else line[about.end() :]
    return parameter, _KEY.sub(lambda found: "SRC" if found[1] == "path" else f"--{found[1] or found[2]}", rest)


@contextmanager
def _failures_kept(folder: str, stands: str) -> Iterator[None]:
    """Report an unforeseen failure in one line; the details stay in the private folder."""
    try:
        yield
    except SlackwaterError:
        raise
    except Exception as error:
        raise failure(error, "changelog", stands, folder) from None
