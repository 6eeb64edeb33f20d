"""Numbers of counted and left-out reports behind estimates: as JSON, as metadata of the table, and in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from privacy.codec import Codec
from privacy.counted import counted
from privacy.json_values import Json, parsed
from privacy.local.design import Design
from privacy.local.document import mark
from transforms.local.distinct import COUNTED, LEFT_OUT, Quality

METADATA = b"slackwater.reports"
"""Key in a table of estimates, in Parquet; its value is the JSON of `Told`."""

_FILES = 3
"""Most files that a line names; the JSON has all."""

_CODEC = Codec()


@dataclass(frozen=True, slots=True, kw_only=True)
class InFile:
    """Reports of one file that do not count, by reason (`transforms.local.distinct.LEFT_OUT`)."""

    file: str
    unusable: int = 0
    other_design: int = 0
    unsigned: int = 0
    repeated: int = 0
    contradictory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Numbers of reports that count and of reports that do not.

    Attributes:
        design: Mark of the design whose reports count.
        signatures_verified: Whether signatures were verified.
        counted: Number of reports that count.
        left_out: Number of reports that do not count, by reason.
        left_out_by_file: Same numbers for each file, if the file is known.
    """

    design: str
    signatures_verified: bool
    counted: int
    left_out: dict[str, int]
    left_out_by_file: tuple[InFile, ...]

    def __post_init__(self) -> None:
        if self.left_out.keys() != LEFT_OUT.keys():
            raise ValueError(f"left_out: expected {', '.join(LEFT_OUT)}")

    def to_json(self) -> Json:
        """Return the JSON object that `read_told` reads."""
        return dict(_CODEC.write(self))


def told(design: Design, quality: Quality, *, verified: bool) -> Told:
    """Sum up how many reports count.

    Args:
        design: Design whose reports count.
        quality: Results for all rows.
        verified: Whether signatures were verified.
    """
    files: dict[str, dict[str, int]] = {}
    for (name, file), rows in sorted(quality.items()):
        if file:
            files.setdefault(file, {})[name] = rows
    total = {name: sum(quality[key] for key in quality if key[0] == name) for name in (COUNTED, *LEFT_OUT)}
    return Told(
        design=mark(design),
        signatures_verified=verified,
        counted=total.pop(COUNTED),
        left_out=total,
        left_out_by_file=tuple(InFile(file=file, **rows) for file, rows in files.items()),
    )


def read_told(text: bytes) -> Told:
    """Return the result of `told`, from its JSON.

    Raises:
        ValueError: The text is not such JSON.
    """
    found: Told = _CODEC.read(Told, parsed(text))
    return found


def lines(said: Told) -> list[str]:
    """Return a line for each reason for which reports were left out."""
    return [
        f"left out: {counted(rows, 'report')} {LEFT_OUT[name]}{_where(name, said)}"
        for name, rows in said.left_out.items()
        if rows
    ]


def warnings(said: Told) -> Iterator[str]:
    """Yield warnings about reports that were left out, and that nobody verified them."""
    yield from doubts(said)
    if not said.signatures_verified:
        yield "signatures were not verified (--secret): anyone who can write these files can change the numbers"


def doubts(said: Told) -> Iterator[str]:
    """Yield warnings about reports that were left out."""
    left_out = said.left_out
    if left_out["contradictory"]:
        yield (
            f"{counted(left_out['contradictory'], 'report')} contradict others of the same person and window, and none "
            "of these counts: either reports are forged in other people's names, or devices report twice"
        )
    if left_out["other_design"]:
        yield "files hold reports of another design: check that they belong to this survey"
    if left_out["unsigned"]:
        yield "files hold reports that no enrolled device has signed"


def _where(name: str, said: Told) -> str:
    files = [(getattr(each, name), each.file) for each in said.left_out_by_file if getattr(each, name)]
    if not files:
        return ""
    named = [f"{file}: {rows:,}" for rows, file in sorted(files, key=lambda one: (-one[0], one[1]))[:_FILES]]
    more = [] if len(files) <= _FILES else [f"{len(files) - _FILES:,} more"]
    return f" ({', '.join([*named, *more])})"
