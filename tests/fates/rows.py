"""Rows of each format as texts: common ones, most of them valid, and odd ones of hostile kinds.

Every row is made from the same fields (key, time, order, owner, states before and after); a format renders them.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

KINDS = {"n": "int64", "ok": "bool", "seen": "timestamp", "u": "string", "w": "string", "x": "float64"}
"""Columns of a state; `x` is measured, `u` names the owner."""

GOOD: dict[str, list[str]] = {
    "at": ["2013-02-08T12:00:00Z", "2013-02-08T07:00:00.5-05:00", "2013-03-10 02:30:00", "2013-02-09"],
    "n": ["0", "1", "2", "-5", "9007199254740993", "9223372036854775807"],
    "ok": ["true", "false"],
    "seen": ["2013-02-01T00:00:00Z", "2013-02-01 08:30:00.123456"],
    "u": ["anna", "ben"],
    "w": ["a", "b", "1", "1.5", "abc"],
    "x": ["1", "2.5", "-0.0", "1e3", "404"],
}
ODD: dict[str, list[str]] = {
    "at": [
        "2013-02-08T08Z",
        "2013-02-08T08+05",
        "noon",
        "",
        "2013-02-30",
        "2013-02-08T12:00:00.1234567891Z",
        "2013-02-08T12:00:00.1234567",
        "1360324800",
    ],
    "n": ["1.0", "1e3", "9223372036854775808", "007", "+1", "0x1F", "x", "", "1096373912123456789"],
    "ok": ["TRUE", "1", "yes", ""],
    "seen": ["2013-02-01T08Z", "0000-01-01", "9999-12-31T23:59:59.999999Z", "2013-02-01 08:30:00.1234567", "never", ""],
    "u": ["", "\u0130", "9" * 40],
    "w": [
        "",
        "null",
        "1e400",
        "2013-02-08T08Z",
        "é😀",
        "a,b",
        'a"b',
        "a\nb",
        "\u2028",
        " a",
        "x" * 300,
        "-1",
        "nan",
        "\0",
    ],
    "x": ["nan", "-inf", "1e400", "1.5e-400", "9" * 40, "", " 1", "1,5", "true", "0x1F", "1096373912123456789"],
}
GARBAGE = (
    *("{}", "{", "[1]", "null", '"x"', "{}{}", "1", '{"id":1}{"id":2}', '{"id": {"a": 1}}', '{"at": 5, "id": "o"}'),
    *('{"before": 5}', '{"after": []}', '{"payload": 1}', '{"payload": null}', '{"op": 1}', '{"ts_ms": 1}', "{" * 600),
    *(
        '{"source_metadata": {}}',
        '{"sort_keys": {}}',
        '{"before": null, "before": {}}',
        '{"after_w": {"a": [1]}}',
        " {}",
    ),
    *('{"source": {"lsn": "1"}, "op": "c", "after": {"id": 1}}', '{"payload": {"op": "m"}}', '{"x": NaN, "w": Inf}'),
)
"""Lines of JSON."""


@dataclass(frozen=True)
class Row:
    """A row by its fields, as texts of values, with None for no value; or a line that is garbage.

    Attributes:
        entry: Number of the key.
        states: State before and after; a missing member is absent from the text.
        how: Seed of a format's choices, so that the row has one text in every file.
    """

    entry: int
    at: str | None = None
    order: int = 0
    owner: str | None = None
    states: tuple[dict[str, str | None] | None, dict[str, str | None] | None] = (None, None)
    garbage: str | None = None
    how: int = 0


def row_of(choose: Random, entry: int, *, odd: float) -> Row:
    """Return one row; each of its values is odd with a probability of `odd`."""

    def value(name: str) -> str | None:
        return None if choose.random() < 0.1 else choose.choice(ODD[name] if choose.random() < odd else GOOD[name])

    def state() -> dict[str, str | None] | None:
        names = [name for name in (*KINDS, "note") if choose.random() < 0.85]
        if choose.random() < 0.05:
            return dict.fromkeys(names)
        return {name: value("w" if name == "note" else name) for name in names}

    before, after = state(), state()
    shape = choose.random()
    at = choose.choice(ODD["at"]) if choose.random() < odd / 2 else choose.choice(GOOD["at"])
    return Row(
        entry=entry,
        at=None if choose.random() < odd / 10 else at,
        order=choose.randrange(5),
        owner=value("u"),
        states=(None if shape < 0.4 else before, None if shape > 0.8 else after),
        garbage=choose.choice(GARBAGE) if choose.random() < odd / 3 else None,
        how=choose.randrange(2**30),
    )


def chooser(row: Row) -> Random:
    """Return a source of choices that are the same for a row in every file."""
    return Random(row.how)


def plain(value: Any) -> Any:
    """Return values that are equal if the readings are equal: NaN equals NaN, 0 and -0 differ, 1 and True differ."""
    return (type(value).__name__, repr(value)) if isinstance(value, bool | float | int) else value
