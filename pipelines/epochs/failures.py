"""Messages about failures: for a disk the folder and what to do, for an unforeseen failure only its type.

The details of an unforeseen failure may quote data, so they are kept on the private side.
"""

import errno
import os
import pwd
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from apache_beam.io.filesystems import FileSystems

from pipelines.spec.load import Spec
from pipelines.store.store import Store
from transforms.common.cloud import forbidden
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.common.sinks import write_text

TRACE = "failure.txt"

_RIGHTS = "account {account} may not read or write it; give it the right, or run as the account that owns the release"
_SPACE = "make room and run again: nothing that was committed is lost"
_REPAIR = "check the disk or the file server and run again: nothing that was committed is lost"
_CURES = {
    errno.EIO: _REPAIR,
    errno.ESTALE: _REPAIR,
    errno.ETIMEDOUT: _REPAIR,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "mount it so that account {account} may write, or choose folders on another disk before the first run",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit of a file's size (ulimit -f) and run again: nothing that was committed is lost",
}
"""Advice by the number of the system's error; every other number is an unforeseen failure."""

_OF_A_FULL_DISK = {errno.ENOSPC, errno.EDQUOT}


def keep_trace(folder: str, error: Exception) -> str:
    """Write the details into a private folder, and return where they are, in words."""
    content = "".join(traceback.format_exception(error))
    trace = FileSystems.join(folder, TRACE)
    try:
        write_text(trace, content, mode=0o600)
    except Exception as refused:  # the cause of the failure may prevent this too
        return f"no details are kept, since {folder} cannot be written ({type(refused).__name__})"
    return f"details (private): {trace}"


@contextmanager
def winner_named(store: Store, epoch: int) -> Iterator[None]:
    """Report a failure as another run's commit, if there is one: that run may have removed files of the failing one."""
    try:
        yield
    except (SpecError, InputError):
        raise
    except Exception:
        store.refuse_if_won(epoch)
        raise


@contextmanager
def failures_kept(spec: Spec, command: str = "run", *, done: str = "") -> Iterator[None]:
    """Report an unforeseen failure in one line; the details, which may quote data, are kept on the private side.

    Args:
        spec: Spec of the release.
        command: Name of the command.
        done: What the command leaves behind, in words. Default: the epoch committed since, or nothing new.
    """
    began = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        yield
    except SlackwaterError:
        raise
    except Exception as error:
        stands = done or _committed_since(spec, began) or "nothing new was published"
        raise failure(error, command, stands, spec.output.private) from None


def failure(error: Exception, command: str, stands: str, folder: str | None) -> SlackwaterError:
    """Return the error that reports an unforeseen failure in one line.

    Args:
        error: The failure. Its text may quote data.
        command: Name of the command.
        stands: What the command leaves behind, in words.
        folder: Private folder that keeps the details, unless a folder or disk is the cause; None: they are not kept.
    """
    refused = _of_a_disk(error, folder)
    if refused is not None:
        return RefusedError(f"{refused}; {stands}")
    reason, kept = forbidden(error), "" if folder is None else f"; {keep_trace(folder, error)}"
    if reason is not None:
        return RefusedError(f"{reason}; {stands}{kept}")
    return SlackwaterError(f"{command} failed with {type(error).__name__}; {stands}{kept}")


@contextmanager
def reading_folders(spec: Spec) -> Iterator[None]:
    """Report an unforeseen failure of a command that only reads; a kept trace would look like a failed run."""
    try:
        yield
    except SlackwaterError:
        raise
    except Exception as error:
        if (refused := _of_a_disk(error, None)) is not None:
            raise RefusedError(refused) from None
        raise SlackwaterError(
            f"{spec.output.private}: cannot be read ({type(error).__name__}); check the path and your rights, and try "
            "again"
        ) from None


def _of_a_disk(error: BaseException, folder: str | None) -> str | None:
    """Return one line about an error of a folder or a disk; None for other errors.

    Args:
        error: The error.
        folder: Folder that is full if the error of a full disk names no file, as those of Arrow's writers.
    """
    found = _refusal(error, folder)
    if found is None:
        return None
    number, path = found
    try:
        account = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        account = str(os.geteuid())
    return f"{path}: {os.strerror(number)}; {_CURES[number].format(account=account)}"


def _refusal(error: BaseException, folder: str | None) -> tuple[int, str] | None:
    """Return the number of the system's error and the path, from the exception or from the message of a worker."""
    if isinstance(error, OSError) and error.errno in _CURES and error.filename is not None:
        return error.errno, os.fsdecode(error.filename)
    for number, path in reversed(re.findall(r"\[Errno (\d+)\] [^:\n]+: '([^'\n]+)'", str(error))):
        if int(number) in _CURES:
            return int(number), path
    full = [int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error)) if int(number) in _OF_A_FULL_DISK]
    return (full[-1], folder) if full and folder is not None else None


def _committed_since(spec: Spec, began: str) -> str | None:
    """State the last epoch if it is committed and not published, or committed since a moment; None if it cannot be
    seen."""
    try:
        history = Store(spec.output.public, spec.output.private).open()
    except Exception:  # the failure of the command may prevent this too
        return None
    if history is None:
        return None
    if history.shown < len(history.commits):
        return f"epoch {history.last.epoch} is committed, and the next run publishes it"
    return f"epoch {history.last.epoch} is published" if history.last.committed_at >= began else None
