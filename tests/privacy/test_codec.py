"""Values read from JSON equal the written ones, and no other document is accepted."""

import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol

import pytest

from privacy.codec import APART, LATER, Codec
from privacy.json_values import digest_of, parsed


class Shape(Protocol):
    """Protocol for which the table below has classes."""


@dataclass(frozen=True)
class Square:
    side: float


@dataclass(frozen=True)
class LongLine:
    points: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("points: expected at least one")


@dataclass(frozen=True)
class All:
    shape: Shape
    either: Square | LongLine
    word: Literal["a", "b"]
    flag: bool
    part: Fraction
    content: bytes
    by_name: dict[str, Square]
    pair: tuple[int, str]
    perhaps: float | None = None
    more: tuple[float, ...] = ()
    elsewhere: int = field(default=0, metadata=APART)


TABLE = {Shape: {"square": Square, "line": LongLine}}
VALUE = All(
    shape=LongLine(((1, 2), (3, 4))),
    either=Square(0.1),
    word="b",
    flag=True,
    part=Fraction(-1, 3),
    content=b"\x00\xff",
    by_name={"x": Square(1e-300)},
    pair=(2**70, "ä"),
    perhaps=1 / 3,
)


@pytest.mark.parametrize("plain", [False, True])
def test_a_value_comes_back_as_it_was(plain: bool) -> None:
    codec = Codec(TABLE, plain=plain)

    written = json.loads(json.dumps(codec.dump(VALUE, version=3)))

    assert codec.load(All, written, version=3) == VALUE
    assert written["either"] == {"kind": "square", "side": 0.1 if plain else (0.1).hex()}
    assert (written["shape"]["kind"], "more" in written, "elsewhere" in written) == ("line", plain, False)
    members = {name: value for name, value in written.items() if name != "version"}
    assert codec.read(All, members, elsewhere=7).elsewhere == 7


WRONG: list[tuple[str, Any, str]] = [
    ("shape", {"points": []}, "shape.kind: missing"),
    ("shape", {"kind": "circle"}, "shape.kind: expected one of square, line"),
    ("either", {"kind": "long_line", "points": []}, "either: points: expected at least one"),
    ("either", {"kind": "long_line", "points": [[1]]}, "either.points[0]: expected a list of 2"),
    ("either", {"kind": "square", "side": 1}, "either.side: expected a finite number as hexadecimal text"),
    ("either", {"kind": "square", "side": "inf"}, "either.side: expected a finite number"),
    ("either", [], "either: expected an object"),
    ("word", "c", "word: expected one of a, b"),
    ("word", None, "word: expected one of a, b"),
    ("flag", 1, "flag: expected true or false"),
    ("either", {"kind": "square", "side": "0x1p+0"}, "either.side: expected a finite number"),
    *(("part", value, "part: expected a fraction") for value in ("2/6", 7, "half", "1/0", "1" * 5000, "1e999999999")),
    *(("content", value, "content: expected hexadecimal text") for value in ("0", "0G", 7)),
    ("by_name", {"x": {}}, "by_name.x.side: missing"),
    ("pair", [True, "a"], "pair[0]: expected an integer"),
    ("pair", [1, 2], "pair[1]: expected text"),
    ("more", {}, "more: expected a list"),
    ("unknown", 1, "unknown: unknown"),
    *(("version", value, "version: not 3") for value in (True, 3.0, 4, "3", None)),
]


@pytest.mark.parametrize(("member", "value", "message"), WRONG)
def test_errors_name_their_place(member: str, value: object, message: str) -> None:
    codec = Codec(TABLE)
    document = codec.dump(VALUE, version=3) | {member: value}

    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        codec.load(All, document, version=3)


def test_of_plain_documents_no_member_may_be_missing() -> None:
    codec = Codec(TABLE, plain=True)
    document = codec.write(VALUE)
    for name in document:
        with pytest.raises(ValueError, match=f"^{name}: missing"):
            codec.read(All, {other: document[other] for other in document if other != name})


@pytest.mark.parametrize("side", [10**400, float("-inf"), float("nan"), True, "1"], ids=lambda side: str(side)[:5])
def test_numbers_of_plain_documents_are_finite_floats(side: object) -> None:
    codec = Codec(plain=True)

    assert codec.read(Square, {"side": 1}) == Square(1.0)
    with pytest.raises(ValueError, match=r"^side: expected a finite number$"):
        codec.read(Square, {"side": side})


def test_a_digest_does_not_depend_on_the_order_of_members() -> None:
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1}) != digest_of({"a": 1, "b": [3]})


def test_text_that_is_nested_without_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed("[" * 200_000)


@dataclass(frozen=True)
class Grown:
    name: str
    marks: tuple[int, ...] = ()
    added: str = field(default="", metadata=LATER)


def test_documents_from_before_a_later_field_stay_the_same() -> None:
    """A record of an earlier version is read, and written again to the same bytes; no other field may be missing."""
    codec, before = Codec(plain=True), {"name": "a", "marks": []}

    assert codec.read(Grown, before) == Grown("a")
    assert codec.write(Grown("a")) == before
    assert codec.write(Grown("a", added="b")) == {**before, "added": "b"}
    with pytest.raises(ValueError, match="marks: missing"):
        codec.read(Grown, {"name": "a", "added": "b"})
