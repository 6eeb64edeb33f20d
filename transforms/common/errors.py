"""The errors that a user can cause or must act on, each with the exit code of the command line.

A message is one line: what is wrong, where, what was expected and what to do. It never holds a
value, a key or a row of the data, since messages travel to logs.
"""

from typing import ClassVar


class SlackwaterError(Exception):
    """Something that a person can mend; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 4


class RefusedError(SlackwaterError):
    """The release may not be made: budget, frozen spec, or another run won."""

    exit_code: ClassVar[int] = 1


class SpecError(SlackwaterError):
    """The spec or the command is wrong, or names a column or type that the files do not have."""

    exit_code: ClassVar[int] = 2


class ColumnError(SpecError):
    """A column of the states that the files do not have as the spec asks for it.

    Attributes:
        column: as the spec names it.
    """

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class InputError(SlackwaterError):
    """The input data cannot be used, beyond the share that the spec allows."""

    exit_code: ClassVar[int] = 3
