"""Words and values of a spec in messages. This module imports nothing slow, since `--help` needs it."""

import difflib
from collections.abc import Iterable
from typing import Any

ALIKE = 0.7
"""Least similarity at which an unknown key gets one suggestion; below it, the message lists the known keys."""


def nearest(word: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """Return the known word that `word` was probably meant to be; None if no word is similar enough.

    Args:
        word: The unknown word.
        known: All known words.
        alike: Least similarity, from 0 to 1 as `difflib` defines it.

    >>> nearest("publsh", ["publish", "weight"])
    'publish'
    >>> nearest("range", ["variance"]), nearest("range", ["variance"], alike=0.7)
    ('variance', None)
    >>> nearest("kfaka", ["kafka", "format"], alike=0.7)  # two transposed letters of five
    'kafka'
    """
    names, written = list(known), word.lower()
    close = [name for name in names if sorted(name) == sorted(written)]
    close = close or difflib.get_close_matches(written, names, n=1, cutoff=alike)
    return close[0] if close else None


def not_one_of(word: str, known: Iterable[str]) -> str:
    """Return the message for a word that is not known.

    >>> not_one_of("parket", ["parquet", "csv"])
    "expected one of parquet, csv, not 'parket'; did you mean 'parquet'?"
    """
    words = list(known)
    meant = nearest(word, words)
    hint = f"; did you mean {meant!r}?" if meant else ""
    return f"expected one of {', '.join(words)}, not {show(word)}{hint}"


def show(value: Any) -> str:
    """Return the text of a value for a message: short, on one line, as in YAML."""
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
