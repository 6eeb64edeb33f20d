"""Words and values of a spec in messages. Nothing slow is imported here: the command line needs it for `--help`."""

import difflib
from collections.abc import Iterable
from typing import Any

ALIKE = 0.7
"""How alike an unknown key is to the one it is taken for: what is less alike is better told which keys there are."""


def nearest(word: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """The known word that `word` was probably meant to be.

    Args:
        alike: how alike they must be, from 0 to 1 as `difflib` has it.

    >>> nearest("publsh", ["publish", "weight"])
    'publish'
    >>> nearest("range", ["variance"]), nearest("range", ["variance"], alike=0.7)
    ('variance', None)
    >>> nearest("kfaka", ["kafka", "format"], alike=0.7)  # of five letters two in each other's place are much
    'kafka'
    """
    names, written = list(known), word.lower()
    close = [name for name in names if sorted(name) == sorted(written)]
    close = close or difflib.get_close_matches(written, names, n=1, cutoff=alike)
    return close[0] if close else None


def not_one_of(word: str, known: Iterable[str]) -> str:
    """The message for a word that is none of the known ones.

    >>> not_one_of("parket", ["parquet", "csv"])
    "expected one of parquet, csv, not 'parket'; did you mean 'parquet'?"
    """
    words = list(known)
    meant = nearest(word, words)
    hint = f"; did you mean {meant!r}?" if meant else ""
    return f"expected one of {', '.join(words)}, not {show(word)}{hint}"


def show(value: Any) -> str:
    """A value of the spec in a message: short, on one line, as YAML has it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "keys with values" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
