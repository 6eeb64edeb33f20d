"""Check of places on `gs://`: whether a command can reach them, before any work and within seconds.

Google's clients and Beam repeat failed requests for minutes. That suits a worker in the middle of a run, which keeps
this behaviour; a person without credentials would wait for nothing.
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
"""Seconds for credentials and for the answer of each bucket; on Google's machines both take less than one."""

_CREDENTIALS = "gs://"
SIGN_IN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file's path"
_ROLES = "give the account the role Storage Object User on the bucket, or Storage Object Viewer on a changelog's"


def refuse_unreachable(places: Iterable[str | None], *, files: Iterable[str | None] = ()) -> None:
    """Send a request to Google for each place on `gs://`.

    Args:
        places: Globs and folders in which files are searched.
        files: Single files; a user who may read them need not be allowed to list others.

    Raises:
        RefusedError: There are no credentials, or they are not accepted.
        SpecError: The bucket does not exist.
        SlackwaterError: The server does not answer.
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
    """Return why a bucket refused a request; None if an error is of another kind."""
    from google.api_core.exceptions import Forbidden, Unauthorized

    if not isinstance(error, (Forbidden, Unauthorized)):
        return None
    bucket = re.search(r"/b/([^/?]+)", str(error))
    where = "Google Storage" if bucket is None else f"bucket {bucket[1]!r}"
    return f"{where} does not allow this with the credentials at hand ({int(error.code or 0)}); {_ROLES}"


def _list(client: Any, bucket: str, path: str = "") -> None:
    """List one matching object; an empty answer also shows that the bucket is reachable."""
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
    """Return an answer that arrives within `PATIENCE`.

    Args:
        ask: Function that sends the request, in another thread.
        where: Place that messages name.
        told: Error for a person, made from the error of the request.
        silent: Error if there is no answer in time.

    Raises:
        SlackwaterError: The request failed, or there is no answer in time.
    """
    answers: list[Answer] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            answers.append(ask())
        except Exception as error:
            errors.append(error)

    thread = Thread(target=work, daemon=True)  # a waiting thread does not keep the program alive
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
    if isinstance(error, ValueError):  # error of a local file, such as a key file without a key
        return RefusedError(f"{where}: the credentials cannot be used ({type(error).__name__}); {SIGN_IN}")
    return silence(where, f" ({type(error).__name__})")


def no_credentials(where: str) -> RefusedError:
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    return RefusedError(
        f"{where} needs credentials, and none were found: not in GOOGLE_APPLICATION_CREDENTIALS "
        f"({'what it names cannot be used' if named else 'not set'}), gcloud's application default file or the "
        f"metadata server of Google's machines; {SIGN_IN}"
    )


def silence(where: str, why: str = "") -> SlackwaterError:
    return SlackwaterError(
        f"{where}: no answer from Google within {PATIENCE:.0f} seconds{why}; check the network and run again"
    )
