"""`slackwater show` of sanitised records: the estimates from all of them, as one table."""

from collections.abc import Sequence

from pipelines.common.arguments import refuse_inside
from pipelines.published.release import naming
from pipelines.sanitised.published import published
from pipelines.show.operation import Shown
from transforms.common.shown_tables import write_shown


def show(path: str, *, output: str | None, query: Sequence[str] | None) -> Shown:
    """Estimate from all sanitised records.

    Args:
        path: Path of the spec, or of the public folder.
        output: Path of the file to write the table to; None: no file.
        query: Names of attributes; None: all.
    """
    records = published(path)
    refuse_inside("output", output, records.folder)
    with naming(records.folder):
        table = records.estimates(query)
    if output is not None:
        write_shown(table, output, local=_utc)
    return Shown(release=records.release, table=table, file=output, records=records.count, local=_utc)


def _utc(moment: int) -> int:
    return moment
