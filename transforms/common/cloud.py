"""Whether what a command needs on `gs://` can be reached: asked once, before any work, and answered within seconds.

Google's clients and Beam repeat what fails for minutes. That suits a worker in the midst of a run, and keeps its usual
form; a person who has no credentials yet would wait for nothing.
"""

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from transforms.common.errors import RefusedError, SlackwaterError, SpecError

Answer = TypeVar("Answer")

PATIENCE = 6.0
"""Seconds for credentials and for the answer of each bucket; on Google's machines both take a fraction of one."""

_CREDENTIALS = "gs://"
SIGN_IN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file's path"
_ROLES = "give the account the role Storage Object User on the bucket, or Storage Object Viewer on a changelog's"


def refuse_unreachable(places: Iterable[str | None], *, files: Iterable[str | None] = ()) -> None:
    """Ask Google for whatever of these lies on `gs://`.

    Args:
        places: globs and folders, in which things are looked for.
        files: single ones; who may read them need not be allowed to list others.

    Raises:
        RefusedError: there are no credentials, or they are not taken there.
        SpecError: there is no such bucket.
        SlackwaterError: nobody answers.
    """
    asked = [(path, ask) for paths, ask in ((files, _get), (places, _list)) for path in paths if path is not None]
    asked = [one for one in dict.fromkeys(asked) if one[0].startswith("gs://")]
    if not asked:
        return
    from google.cloud import storage

    client = in_time(storage.Client, _CREDENTIALS, _told, no_credentials)
    for path, ask in asked:
        in_time(partial(ask, client, *path.removeprefix("gs://").split("/", 1)), path, _told, silence)


def forbidden(error: BaseException) -> str | None:
    """Why a bucket did not take a request, in words; None if an error is of another kind."""
    from google.api_core.exceptions import Forbidden, Unauthorized

    if not isinstance(error, (Forbidden, Unauthorized)):
        return None
    bucket = re.search(r"/b/([^/?]+)", str(error))
    where = "Google Storage" if bucket is None else f"bucket {bucket[1]!r}"
    return f"{where} does not allow this with the credentials at hand ({int(error.code or 0)}); {_ROLES}"


def _list(client: Any, bucket: str, path: str = "") -> None:
    """Look for one object of those that are meant; finding none is an answer too."""
    prefix = re.split(r"[*?\[%]", path, maxsplit=1)[0]
    next(iter(client.list_blobs(bucket, prefix=prefix, max_results=1, **_patience())), None)


def _get(client: Any, bucket: str, path: str = "") -> None:
    client.bucket(bucket).get_blob(path, **_patience())


def _patience() -> dict[str, Any]:
    from google.cloud.storage.retry import DEFAULT_RETRY

    return {"timeout": PATIENCE / 2, "retry": DEFAULT_RETRY.with_timeout(PATIENCE / 2)}


def in_time(
    ask: Callable[[], Answer],
    where: str,
    told: Callable[[Exception, str], SlackwaterError],
    silent: Callable[[str], SlackwaterError],
) -> Answer:
    """What is answered within the time.

    Args:
        where: what messages name.
        told: the error for a person of one that was answered.
        silent: the error where nothing was.
    """
    answers: list[Answer] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            answers.append(ask())
        except Exception as error:
            errors.append(error)

    thread = Thread(target=work, daemon=True)  # one that still waits does not keep the program
    thread.start()
    thread.join(PATIENCE)
    if errors:
        raise told(errors[0], where) from None
    if not answers:
        raise silent(where)
    return answers[0]


def _told(error: Exception, where: str) -> SlackwaterError:
    from google.api_core.exceptions import NotFound
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError

    if isinstance(error, DefaultCredentialsError) and where == _CREDENTIALS:
        return no_credentials(where)
    if isinstance(error, GoogleAuthError) and not (error.retryable or isinstance(error, TransportError)):
        return RefusedError(f"{where}: Google does not take these credentials ({type(error).__name__}); {SIGN_IN}")
    if isinstance(error, NotFound):
        bucket = where.removeprefix("gs://").partition("/")[0]
        return SpecError(f"{where}: there is no bucket {bucket!r}; check the name, or make it first")
    reason = forbidden(error)
    if reason is not None:
        return RefusedError(f"{where}: {reason}")
    if isinstance(error, ValueError):  # of what is read on this machine: a key file that holds no key
        return RefusedError(f"{where}: the credentials cannot be used ({type(error).__name__}); {SIGN_IN}")
    return silence(where, f" ({type(error).__name__})")


def no_credentials(where: str) -> RefusedError:
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    return RefusedError(
        f"{where} needs credentials, and there are none: looked at GOOGLE_APPLICATION_CREDENTIALS "
        f"({'what it names cannot be used' if named else 'not set'}), gcloud's application default file, and the "
        f"metadata server of Google's machines; {SIGN_IN}"
    )


def silence(where: str, why: str = "") -> SlackwaterError:
    return SlackwaterError(
        f"{where}: no answer from Google within {PATIENCE:.0f} seconds{why}; check the network and run again"
    )
