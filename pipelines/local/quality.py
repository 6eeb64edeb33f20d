"""What became of the reports that estimates are made from: as JSON, as the table's metadata, and in words."""

from collections.abc import Iterator

from privacy.counted import counted
from privacy.exact import Json, Members, parsed
from privacy.local.design import Design
from privacy.local.document import mark
from transforms.local.distinct import COUNTED, LEFT_OUT, Quality

METADATA = b"slackwater.reports"
"""Of a table of estimates, in Parquet: the JSON of `told`."""

_FILES = 3
"""That a line names; the JSON has all."""


def told(design: Design, quality: Quality, *, verified: bool) -> Json:
    """As JSON.

    Args:
        design: whose reports count.
        quality: what became of all rows.
        verified: whether signatures were.
    """
    files: dict[str, dict[str, int]] = {}
    for (name, file), rows in sorted(quality.items()):
        if file:
            files.setdefault(file, {})[name] = rows
    total = {name: sum(quality[key] for key in quality if key[0] == name) for name in (COUNTED, *LEFT_OUT)}
    return {
        "design": mark(design),
        "signatures_verified": verified,
        COUNTED: total.pop(COUNTED),
        "left_out": total,
        "left_out_by_file": [{"file": file, **rows} for file, rows in files.items()],
    }


def read_told(text: bytes) -> Json:
    """What `told` has given, as it was written.

    Raises:
        ValueError: it is something else.
    """
    members = Members(parsed(text))
    left_out, files = members.of("left_out"), []
    found = {
        "design": members.text("design"),
        "signatures_verified": members.flag("signatures_verified"),
        COUNTED: members.count(COUNTED),
        "left_out": {name: left_out.count(name) for name in LEFT_OUT},
    }
    for each in members.each("left_out_by_file"):
        file = each.text("file")
        files.append({"file": file, **{name: each.count(name) for name in LEFT_OUT if each.has(name)}})
        each.end()
    left_out.end()
    members.end()
    return {**found, "left_out_by_file": files}


def lines(said: Json) -> list[str]:
    """What was left out, and why; a line for each reason."""
    return [
        f"left out: {counted(rows, 'report')} {LEFT_OUT[name]}{_where(name, said)}"
        for name, rows in said["left_out"].items()
        if rows
    ]


def warnings(said: Json) -> Iterator[str]:
    """What nobody should overlook."""
    left_out = said["left_out"]
    if left_out["contradictory"]:
        yield (
            f"{counted(left_out['contradictory'], 'report')} contradict others of the same person and window, and none "
            "of these counts: somebody reports in other people's names, or devices report twice"
        )
    if left_out["other_design"]:
        yield "files hold reports of another design: look whether they are of this survey"
    if left_out["unsigned"]:
        yield "files hold reports that no enrolled device has signed"
    if not said["signatures_verified"]:
        yield "signatures were not verified (--secret): whoever can write these files can change the numbers"


def _where(name: str, said: Json) -> str:
    files = [(each[name], each["file"]) for each in said["left_out_by_file"] if name in each]
    if not files:
        return ""
    named = [f"{file}: {rows:,}" for rows, file in sorted(files, key=lambda one: (-one[0], one[1]))[:_FILES]]
    more = [] if len(files) <= _FILES else [f"{len(files) - _FILES:,} more"]
    return f" ({', '.join([*named, *more])})"
