"""Failures as one line each: for a full disk the folder and what to do."""

import errno
import os

import pytest

from pipelines.epochs.failures import failure
from transforms.common.errors import RefusedError, SlackwaterError

NAMELESS = f"OSError: [Errno {errno.ENOSPC}] No space left on device [while running 'WriteParts']"


@pytest.mark.parametrize(
    ("error", "folder"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "log/part.parquet"), "log/part.parquet"),
        (RuntimeError(NAMELESS), "log"),  # of a writer of Arrow, in a worker of Beam
    ],
)
def test_a_full_disk_is_reported_with_the_file_or_else_the_folder(error: Exception, folder: str) -> None:
    said = failure(error, "changelog", "no changelog was written", "log")

    assert isinstance(said, RefusedError)
    assert str(said).startswith(f"{folder}: No space left on device; make room and run again")
    assert str(said).endswith("; no changelog was written")


def test_other_errors_without_a_file_are_unforeseen(tmp_path) -> None:
    said = failure(RuntimeError("OSError: [Errno 13] Permission denied"), "changelog", "nothing", str(tmp_path))

    assert type(said) is SlackwaterError
    assert str(said).startswith("changelog failed with RuntimeError; nothing; details (private): ")
