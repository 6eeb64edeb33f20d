"""Columns of published numbers that a release has only if one of its queries needs them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column that some queries need; it is null in the rows of the others.

    Attributes:
        name: name in the published files.
        type: type of its values: `bool`, `int` or `float`.
        of: what needs it, in the plural if possible, for messages.
    """

    name: str
    type: type
    of: str
