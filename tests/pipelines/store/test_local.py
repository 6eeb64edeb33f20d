"""The local folder of a store names its files in errors of the system."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.store.local import LocalFolder


def _locked(folder: LocalFolder) -> None:
    with folder.lock():
        pass


OPERATIONS: dict[str, Callable[[LocalFolder], object]] = {
    "lock": lambda folder: _locked(folder),
    "put": lambda folder: folder.put("commits/a.json", b"{}"),
    "write": lambda folder: folder.write("commits/a.json", b"{}"),
    "create": lambda folder: folder.create("commits/a.json", b"{}", draft="draft"),
    "flush": lambda folder: folder.flush(["commits/b.json"]),
    "drop": lambda folder: folder.drop(["commits/b.json"]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_error_while_a_file_is_closed_names_a_path_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """File servers report a full disk when a file is closed."""
    folder, close = LocalFolder(str(tmp_path), private=True), os.close
    folder.write("commits/b.json", b"{}")

    def full(descriptor: int) -> None:
        close(descriptor)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "close", full)
    with pytest.raises(OSError, match="No space left") as raised:
        OPERATIONS[name](folder)
    monkeypatch.undo()

    assert str(raised.value.filename).startswith(str(tmp_path))
