"""BigQuery, by Google's own client: whether a table can be used, and one load job for one file.

A load job succeeds completely or not at all, and BigQuery accepts an id once: it answers a second job of the same id
with 409. So a job whose id follows from release, epoch and table runs once, even if several runs request it.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, BinaryIO

import pyarrow as pa

from pipelines.sinks.base import SinkTable
from privacy.counted import counted
from transforms.common.cloud import PATIENCE, SIGN_IN, in_time, no_credentials, silence
from transforms.common.errors import RefusedError, SlackwaterError, SpecError

EMULATOR = "BIGQUERY_EMULATOR_HOST"
"""Variable with the address of an emulator, which Google's client then uses without credentials."""

LONGEST = 3600.0
"""Longest time of a job, in seconds."""

_WRITE = "bigquery.tables.updateData"
_ROLES = "give the account the roles BigQuery Data Editor on the dataset and BigQuery Job User on the project"

_TYPES: Mapping[pa.DataType, str] = {
    pa.string(): "STRING",
    pa.int32(): "INTEGER",
    pa.int64(): "INTEGER",
    pa.float64(): "FLOAT",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}


class BigQueryTable(SinkTable):
    """A table `project.dataset.table`, partitioned by the months of its column `end`."""

    __slots__ = ()

    def refuse_unusable(self, *, loaded: int, last: str | None = None) -> None:
        """Ask BigQuery for the table, within seconds, and make it if it is missing.

        Raises:
            RefusedError: Credentials are missing, not accepted, or do not allow writing; or the table has other
                columns, is gone, or was created again.
            SpecError: The client is not installed, or there is no such dataset.
            SlackwaterError: The server does not answer.
        """
        client = _client(self.name)
        in_time(partial(_find, client, self, loaded, last), self.name, _told, silence)

    def load_once(self, id_: str, write: Callable[[BinaryIO], int], file: BinaryIO) -> None:
        """Load the file that `write` makes, unless a job of this id has done so.

        A number is added to the id, one more after each failed job.

        Args:
            id_: Beginning of the job's id.
            write: Function that writes the rows to a file and returns their number.
            file: Empty file to write to.

        Raises:
            RefusedError: BigQuery refused the file, or as `refuse_unusable`.
            SpecError, SlackwaterError: As `refuse_unusable`.
        """
        client = _client(self.name)
        with _telling(self.name):
            location = client.get_dataset(self.name.rpartition(".")[0]).location
            for number in count():
                numbered = f"{id_}-{number}"
                job, own = _known(client, numbered, location), False
                if job is None:
                    job, own = _sent(client, self, numbered, location, write, file)
                if job.state != "DONE":
                    job = _ended(client, job, self, location)
                if job.error_result is None:
                    if not own:
                        _refuse_older(client, self, job)
                    return
                if own:
                    reason = str(job.error_result.get("message", "")).partition("\n")[0]
                    raise RefusedError(f"{self.name}: BigQuery did not load job {numbered}: {reason}")


def _sent(
    client: Any, table: BigQueryTable, id_: str, location: str, write: Callable[[BinaryIO], int], file: BinaryIO
) -> tuple[Any, bool]:
    """Return the job, and whether this call has sent it."""
    from google.api_core.exceptions import GoogleAPIError
    from google.cloud.bigquery import LoadJobConfig

    file.seek(0)
    file.truncate()
    write(file)
    config = LoadJobConfig(
        source_format="PARQUET",
        write_disposition="WRITE_APPEND",
        create_disposition="CREATE_NEVER",
        schema=_fields(table.schema),
    )
    try:
        job = client.load_table_from_file(
            file, table.name, job_id=id_, project=client.project, location=location, job_config=config, rewind=True
        )
    except GoogleAPIError:
        job = _known(client, id_, location)  # sent by another run, or by this one without an answer
        if job is None:
            raise
        return job, False
    return job, True


def _known(client: Any, id_: str, location: str) -> Any:
    from google.api_core.exceptions import NotFound

    try:
        return client.get_job(id_, project=client.project, location=location)
    except NotFound:
        return None


def _ended(client: Any, job: Any, table: BigQueryTable, location: str) -> Any:
    from google.api_core.exceptions import GoogleAPICallError

    try:
        return job.result(timeout=LONGEST)
    except GoogleAPICallError:  # also where the job itself has failed
        found = _known(client, job.job_id, location)
        if found is None or found.state != "DONE":
            raise
        return found


def _refuse_older(client: Any, table: BigQueryTable, job: Any) -> None:
    """Refuse a table that is younger than a job: if it was created again, the rows of the job are missing."""
    created = client.get_table(table.name).created
    if job.ended is not None and created is not None and job.ended < created:
        raise RefusedError(
            f"{table.name}: job {job.job_id} loaded its rows before the table was made, so they are in another table "
            "of that name; name a table that never existed, into which all epochs are loaded"
        )


def _find(client: Any, table: BigQueryTable, loaded: int, last: str | None) -> None:
    from google.api_core.exceptions import NotFound
    from google.cloud import bigquery

    patience = {"timeout": PATIENCE / 2, "retry": bigquery.DEFAULT_RETRY.with_timeout(PATIENCE / 2)}
    location = client.get_dataset(table.name.rpartition(".")[0], **patience).location
    try:
        found = client.get_table(table.name, **patience)
    except NotFound:
        if loaded:
            raise RefusedError(
                f"{table.name}: is gone, with {counted(loaded, 'epoch')}; restore it (BigQuery keeps deleted tables "
                "for some days), or name another table, into which all epochs are loaded"
            ) from None
        new = bigquery.Table(table.name, schema=_fields(table.schema))
        new.time_partitioning = bigquery.TimePartitioning(type_="MONTH", field=table.end)
        new.clustering_fields = ["release", "query"]
        found = client.create_table(new, exists_ok=True, **patience)
    wanted = {field.name: field.field_type for field in _fields(table.schema)}
    there = {field.name: field.field_type if field.mode == "NULLABLE" else field.mode for field in found.schema}
    if there == wanted:
        for number in count() if last else ():  # all but the last job have failed
            job = _known(client, f"{last}-{number}", location)
            if job is None:
                break
            if job.error_result is None:
                _refuse_older(client, table, job)
        if not _is_writable(client, table.name, patience):
            raise RefusedError(f"{table.name}: this account may not write into it; {_ROLES}")
        return
    other = [name for name in (*wanted, *there) if wanted.get(name) != there.get(name)]
    raise RefusedError(
        f"{table.name}: has other columns than this release publishes (first {other[0]}: {there.get(other[0], 'none')} "
        f"in the table, {wanted.get(other[0], 'none')} in the release); name another table, which is made then"
    )


def _is_writable(client: Any, name: str, patience: Mapping[str, Any]) -> bool:
    from google.api_core.exceptions import MethodNotAllowed

    try:
        granted = client.test_iam_permissions(name, [_WRITE], **patience)
    except MethodNotAllowed:  # an emulator has no access rights
        return True
    return _WRITE in granted.get("permissions", ())


def _fields(schema: pa.Schema) -> list[Any]:
    """Return the fields of BigQuery for columns; all may be null, as in the Parquet files."""
    from google.cloud.bigquery import SchemaField

    return [SchemaField(field.name, _TYPES[field.type]) for field in schema]


def _client(table: str) -> Any:
    try:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import bigquery
    except ImportError:
        raise SpecError(
            "output.bigquery: BigQuery needs Google's client; run `pip install '.[bigquery]'` in the project's folder"
        ) from None
    project = table.rsplit(".", 2)[0]
    if os.environ.get(EMULATOR):
        return bigquery.Client(project=project, credentials=AnonymousCredentials())
    return in_time(partial(bigquery.Client, project=project), "BigQuery", _told, no_credentials)


@contextmanager
def _telling(where: str) -> Iterator[None]:
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from requests.exceptions import RequestException

    try:
        yield
    except (GoogleAPIError, GoogleAuthError, RequestException, TimeoutError) as error:
        raise _told(error, where) from None


def _told(error: Exception, where: str) -> SlackwaterError:
    from google.api_core.exceptions import ClientError, Forbidden, NotFound, Unauthorized
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError

    if isinstance(error, SlackwaterError):
        return error
    if isinstance(error, DefaultCredentialsError):
        return no_credentials("BigQuery")
    if isinstance(error, GoogleAuthError) and not (error.retryable or isinstance(error, TransportError)):
        return RefusedError(f"{where}: Google refuses these credentials ({type(error).__name__}); {SIGN_IN}")
    if isinstance(error, Forbidden | Unauthorized):
        code = int(error.code or 0)
        return RefusedError(f"{where}: not allowed with the credentials at hand ({code}); {_ROLES}")
    if isinstance(error, NotFound):
        dataset = where.rpartition(".")[0]
        return SpecError(
            f"{where}: there is no dataset {dataset}, or no such project; check the name, or make it first"
        )
    if isinstance(error, ClientError):
        return RefusedError(f"{where}: BigQuery refuses this: {str(error.message).partition(chr(10))[0]}")
    return silence(where, f" ({type(error).__name__})")
