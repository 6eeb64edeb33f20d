"""Errors that a user can cause or must act on, each with the exit code of the command line.

A message is one line: what is wrong, where, what was expected and what to do. It never holds a value, a key or a row of
the data, since messages reach logs. Of texts in files it shows only the names and types of Parquet's and Avro's
schemas, which are public: a name in a CSV or JSON file can be a value.
"""

from typing import ClassVar


class SlackwaterError(Exception):
    """Error that a person can fix; `exit_code` is the exit code of the command line."""

    exit_code: ClassVar[int] = 4


class RefusedError(SlackwaterError):
    """The release is refused: the budget, a frozen spec or a concurrent run does not allow it."""

    exit_code: ClassVar[int] = 1


class SpecError(SlackwaterError):
    """The spec or the command is wrong, or names a column or type that the files do not have."""

    exit_code: ClassVar[int] = 2


class ColumnError(SpecError):
    """The files do not have a column of the states in the form that the spec needs.

    Attributes:
        column: Name of the column in the spec.
    """

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class InputError(SlackwaterError):
    """The input data is unusable, beyond the share of unusable rows that the spec allows."""

    exit_code: ClassVar[int] = 3
