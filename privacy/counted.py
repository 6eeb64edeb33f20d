"""Numbers with their nouns, for messages and pages."""

from collections.abc import Sequence

_IRREGULAR = {"person": "people", "entry": "entries", "query": "queries"}


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the singular for 1; thousands are grouped.

    >>> counted(1, "window"), counted(0, "published number"), counted(1234, "query")
    ('1 window', '0 published numbers', '1,234 queries')
    """
    return f"{number:,} {noun if number == 1 else _IRREGULAR.get(noun, f'{noun}s')}"


def up_to(first: int, last: int) -> str:
    """A range of whole numbers.

    >>> up_to(1, 3), up_to(2, 2)
    ('1 to 3', '2')
    """
    return f"{first}" if first == last else f"{first} to {last}"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
