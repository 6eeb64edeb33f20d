"""`slackwater changelog`: any changelog as Parquet, a check of it, and a spec to start from."""

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from pipelines.changelog.check import NOTICE, check, check_text
from pipelines.changelog.convert import DIAGNOSTICS, convert
from pipelines.changelog.parquet_parts import FILE, ROW, SIDES, TIME
from pipelines.changelog.source import KEYS, Named, named_by
from pipelines.changelog.suggest import in_flow, section_of, suggest
from pipelines.epochs.failures import keep_trace
from pipelines.epochs.flags import options_of, refuse_any
from pipelines.epochs.results import Result
from pipelines.spec.paths import within
from transforms.common.errors import SlackwaterError, SpecError
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.files.opening import open_random
from transforms.sources.formats.parquet import PARQUET
from transforms.sources.inspection import inspect, state_columns

_TAKEN = re.compile(rf"entry|{TIME}|order_\d+|{'|'.join(SIDES)}|{FILE}|{ROW}")
_LEFT_BY_FAILURES = {DIAGNOSTICS, "failure.txt"}


def changelog(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Convert and check, suggest, or all of it."""
    if arguments.output is None and not arguments.suggest:
        raise SpecError("-o: missing; name a private folder for the Parquet changelog, or ask for --suggest alone")
    with _flags_named(arguments):
        asked = named_by(arguments)
        if arguments.output is None:
            return _suggest_alone(asked, flags)
        options_of(flags)
        folder = arguments.output
        _refuse_folder(folder, asked)
        layout, left = _layout(asked)
    _make_private(folder)
    with _failures_kept(folder, "no changelog was written"):
        paths, diagnosis = convert(layout, folder=folder, flags=flags, bad_rows=asked.bad_rows, shrink=asked.shrink)
        _close(folder)
    with _failures_kept(folder, "the changelog is written, but not checked"):
        source = _converted(paths[0], folder, layout)
        found = check(paths, owner=None if layout.owner is None else source.owner, folder=folder)
    if layout.snapshots:
        found["out_of_order"] = None  # a change has no place there
    skipped = sum(rows for _, _, rows in diagnosis.skipped)
    found |= {"rows_read": diagnosis.rows, "rows_dead": diagnosis.dead, "rows_skipped": skipped}
    section = section_of(source)
    document = {"notice": NOTICE, "files": paths, "left_out": list(left), "check": found, "changelog": section}
    lines = [f"{folder}: {len(paths)} Parquet files", f"check, {NOTICE}", check_text(found)]
    lines += [f"left out, since no type that a state can have holds them: {', '.join(left)}"] if left else []
    if not arguments.suggest:
        return document, "\n".join([*lines, f"changelog: {in_flow(section)}"])
    if not arguments.json:
        print("\n".join(lines), file=sys.stderr)
    text = suggest(source, layout)
    return {**document, "spec": text}, text


def _suggest_alone(asked: Named, flags: list[str]) -> Result:
    refuse_any(flags, "changelog --suggest")
    layout, _ = _layout(asked)
    text = suggest(asked.source, layout)
    return {"spec": text}, text


def _layout(asked: Named) -> tuple[Layout, tuple[str, ...]]:
    """With all columns of the states, and the columns that are left out."""
    columns, left = state_columns(asked.source)
    layout = inspect(asked.source, asked.numbers, columns, asked.times)
    if not layout.states:
        raise SpecError(f"{layout.files[0].path}: states have no columns there; see before and after")
    if layout.owner is not None and _TAKEN.fullmatch(layout.source.owner or ""):
        raise SpecError(f"privacy.unit: column {layout.source.owner!r} has a name of the new files; rename it")
    return layout, left


def _refuse_folder(folder: str, asked: Named) -> None:
    """Refuse a folder in which there is something, or that others look at."""
    if asked.public is not None and within(folder, asked.public):
        raise SpecError(f"-o {folder}: lies inside output.public; a changelog is never public")
    if "://" in folder:
        found = FileSystems.match([f"{folder.rstrip('/')}/*"])[0].metadata_list
        there = [file.path for file in found if f"/{DIAGNOSTICS}/" not in file.path]
    else:
        path = Path(folder)
        if any((above / "manifest.json").exists() for above in (path, *path.resolve().parents)):
            raise SpecError(f"-o {folder}: lies inside the public folder of a release; a changelog is never public")
        if path.exists() and not path.is_dir():
            raise SpecError(f"-o {folder}: is a file; name a new folder")
        there = [one.name for one in path.iterdir() if one.name not in _LEFT_BY_FAILURES] if path.exists() else []
    if any(re.search(r"(^|/)part-\d{6}\.parquet$", name) for name in there):
        another = f"{folder.rstrip('/')}-{datetime.now(UTC):%Y-%m-%d}"
        raise SpecError(
            f"-o {folder}: holds a copy already, and nothing is added to one; give the files that are new a folder of "
            f"their own, such as {another}, and let the spec read both"
        )
    if there:
        raise SpecError(f"-o {folder}: is not empty; name a new folder")


def _make_private(folder: str) -> None:
    if "://" in folder:
        return
    try:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(folder).chmod(0o700)
    except OSError as error:
        raise SpecError(f"-o {folder}: cannot be made ({error.strerror}); name another folder") from None


def _close(folder: str) -> None:
    """Nobody else may look in."""
    if "://" not in folder:
        for path in Path(folder).rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)


def _converted(path: str, folder: str, layout: Layout) -> Source:
    """How the new files are read."""
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
    )


@contextmanager
def _flags_named(arguments: argparse.Namespace) -> Iterator[None]:
    """Where flags stand for a spec's keys, errors name the flags."""
    try:
        yield
    except SpecError as error:
        if arguments.source.endswith((".yaml", ".yml")):
            raise
        keys = re.compile(rf"(?<![\w./-])changelog\.({'|'.join(KEYS)}|path)(?=[:; ,]|$)", re.MULTILINE)
        text = keys.sub(lambda found: "SRC" if found[1] == "path" else f"--{found[1]}", str(error))
        raise SpecError(re.sub(r"(?<![\w./-])privacy\.unit(?=:)", "--unit", text)) from None


@contextmanager
def _failures_kept(folder: str, stands: str) -> Iterator[None]:
    """Report a failure that nobody foresaw in one line; the details stay in the private folder."""
    try:
        yield
    except SlackwaterError:
        raise
    except Exception as error:
        raise SlackwaterError(
            f"changelog failed with {type(error).__name__}; {stands}; {keep_trace(folder, error)}"
        ) from None
