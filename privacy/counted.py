"""Numbers with their nouns, for messages and pages."""

from collections.abc import Sequence

_UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))
_IRREGULAR = {"person": "people", "entry": "entries", "query": "queries"}


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, in the singular for 1; thousands are grouped.

    >>> counted(1, "window"), counted(0, "published number"), counted(1234, "query")
    ('1 window', '0 published numbers', '1,234 queries')
    """
    return f"{number:,} {noun if number == 1 else _IRREGULAR.get(noun, f'{noun}s')}"


def up_to(first: int, last: int) -> str:
    """Return a range of integers as text.

    >>> up_to(1, 3), up_to(2, 2)
    ('1 to 3', '2')
    """
    return f"{first}" if first == last else f"{first} to {last}"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def time_text(length: int) -> str:
    """Return microseconds as text, in the largest unit in which they are an integer.

    >>> time_text(86_400_000_000), time_text(36 * 3_600_000_000)
    ('day', '36 hours')
    """
    for unit, size in _UNITS:
        if length % size == 0:
            return counted(length // size, unit) if length > size else unit
    return counted(length, "microsecond")
