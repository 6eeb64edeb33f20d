"""What a sink offers: whether a table of it can be used, and one load of one file."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SinkTable(ABC):
    """The expected form of a table.

    Attributes:
        name: Its whole name, as in the spec.
        end: Column with the end of a row's time.
    """

    name: str
    schema: pa.Schema
    end: str

    @abstractmethod
    def refuse_unusable(self, *, loaded: int, last: str | None = None) -> None:
        """Look the table up, within seconds, and make it if it is missing.

        Args:
            loaded: Number of epochs that were loaded into it.
            last: Id of the job that loaded the last of them; the table must not be younger.

        Raises:
            SlackwaterError: The table cannot be used.
        """

    @abstractmethod
    def load_once(self, id_: str, write: Callable[[BinaryIO], int], file: BinaryIO) -> None:
        """Load the file that `write` makes, unless a job of this id has done so.

        Args:
            id_: Id of the job.
            write: Writes the load file, and returns its number of rows.
            file: Temporary file for the load file.

        Raises:
            SlackwaterError: The file is not loaded.
        """
