"""A transform from a changelog to published estimates."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint

from pipelines.common.arguments import Moment, moment_of, refuse_small
from pipelines.epochs.within import PublishEpoch, epoch_of
from pipelines.published.release import Published
from pipelines.show.operation import numbers
from pipelines.spec.load import Spec, load
from pipelines.spec.times import moment_text
from pipelines.store.store import Store
from transforms.common.errors import SpecError
from transforms.common.several import Collections
from transforms.release.published_columns import columns_of_some, key_types
from transforms.sources.changelog import ReadChangelog
from transforms.sources.rows import ReadRows, schema_of


class Release(beam.PTransform):
    """Publish the due windows of a release within a pipeline: from rows of a changelog to rows of estimates.

    Applied to rows with a schema (`beam.Row`, a NamedTuple), it reads them as the new rows of the changelog, with the
    columns that the spec's `changelog` names; its `path` is not read. Applied to a pipeline, it reads the spec's own
    changelog. The spec alone defines everything else.

    It makes one epoch of the release as `slackwater run` does, with the same claim, and samples noise once. One step
    receives all exact sums, commits the epoch to the release store, and returns the committed numbers. If a runner
    repeats that step, or the pipeline is started again, the step returns the same numbers and samples nothing. Give
    each row in one epoch. Contribution bounding continues from the state of earlier epochs, so repeated rows cost no
    privacy.

    It returns all published estimates as `beam.Row`: `query`, `kind`, `window_start`, `window_end` (ISO 8601, UTC),
    each key of `by`, `value`, `stddev`, `ci_low`, `ci_high`.

    Args:
        spec: The path of a spec, or what `load` returns.
        until: Publish only windows that have closed by then: a datetime with a zone, or text in ISO 8601 as in Beam
            YAML. None: the time at which the pipeline is built.
        shards: Number of parts into which privacy units are split, in the first run. None: by the size of the files,
            and one for rows, whose size is unknown.

    Raises:
        SpecError: The rows have no schema, or lack columns that the spec names. Raised while the pipeline is built,
            before any data is read.
        RefusedError: The folders hold another release.

    Example:
        `rows | slackwater.Release("wards.yaml")`, or `pipeline | slackwater.Release("wards.yaml")`.
    """

    def __init__(self, spec: str | Path | Spec, *, until: Moment = None, shards: int | None = None) -> None:
        super().__init__()
        self._spec = spec if isinstance(spec, Spec) else load(spec)
        self._until = moment_of("until", until)
        refuse_small("shards", shards)
        self._shards = shards

    def expand(self, rows: Collections) -> beam.PCollection[Any]:
        spec = self._spec
        schema = None
        if isinstance(rows, beam.PCollection):
            if not rows.is_bounded:
                raise SpecError(
                    "the rows have no end; use `slackwater run --streaming`, which publishes window after window"
                )
            schema = schema_of(rows.element_type, spec.changelog.source)
        epoch = epoch_of(spec, until=self._until, shards=self._shards, rows=schema)
        if epoch.job is None:
            done = rows.pipeline | "NothingDue" >> beam.Create([None], reshuffle=False)
        else:
            reader = ReadChangelog(epoch.job.layout) if schema is None else ReadRows(epoch.job.layout)
            done = rows | reader | PublishEpoch(epoch, epoch.job)
        return done | "Estimates" >> beam.FlatMap(_estimates, spec).with_output_types(row_type(spec))


_TEXT, _WHOLE, _NUMBER, _TRUTH = Optional[str], Optional[int], Optional[float], Optional[bool]  # noqa: UP045
"""Types of columns; Beam would treat `str | None` as a type that only Python can read."""

_OPTIONAL: dict[type, Any] = {bool: _TRUTH, int: _WHOLE, float: _NUMBER}


def row_type(spec: Spec) -> Any:
    """Return the schema of estimates."""
    kinds = {name: _WHOLE if pa.types.is_integer(type_) else _TEXT for name, type_ in key_types(spec.queries).items()}
    fields: list[tuple[str, Any]] = [(name, str) for name in ("query", "kind", "window_start", "window_end")]
    fields += [*kinds.items(), *((name, _NUMBER) for name in ("value", "stddev", "ci_low", "ci_high"))]
    fields += [(column.name, _OPTIONAL[column.type]) for column in columns_of_some(spec.queries)]
    return RowTypeConstraint.from_fields(fields)


def _estimates(_: None, spec: Spec) -> Iterator[Any]:
    store = Store(spec.output.public, spec.output.private)
    if not store.commits():
        return
    table = numbers(Published(spec.output.public), None)
    for name in ("window_start", "window_end"):
        moments = [moment_text(moment) for moment in table[name].cast(pa.int64()).to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(moments, pa.string()))
    names = [name for name, _ in row_type(spec)._fields]
    for row in table.to_pylist():
        yield beam.Row(**{name: row.get(name) for name in names})
