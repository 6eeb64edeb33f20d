"""One transform: a changelog in, published estimates out."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Optional

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint

from pipelines.epochs.within import PublishEpoch, epoch_of
from pipelines.reports.published import Published
from pipelines.reports.show import numbers
from pipelines.spec.load import Spec, load
from pipelines.spec.times import moment_text
from pipelines.store.store import Store
from slackwater.arguments import count_of, moment_of
from transforms.common.errors import SpecError
from transforms.common.several import Collections
from transforms.release.published_columns import GROUPED, SAMPLED, SPREAD_OVER, key_types
from transforms.release.quantile_tables import QUANTILE
from transforms.sources.changelog import ReadChangelog
from transforms.sources.rows import ReadRows, schema_of


class Release(beam.PTransform):
    """Publish what is due of a spec's release, within a pipeline: rows of a changelog in, rows of estimates out.

    Applied to rows with a schema (`beam.Row`, a NamedTuple) it takes them for the new
    rows of the changelog, with the columns that the spec's `changelog` names; its `path` is not read. Applied to a
    pipeline it reads the spec's own changelog. All else is said once, by the spec.

    It is one epoch of the release, as `slackwater run` makes it, with the same claim, and noise is sampled once. All
    exact sums come to one step, which commits the epoch to the release store and gives what is committed. When a runner
    repeats that step, or the pipeline is started again, it gives the same and samples nothing. Give each row in one
    epoch: bounding goes on from what the epochs before have left, so rows that come again cost no privacy.

    It gives all that is published so far as `beam.Row`: `query`, `kind`, `window_start`, `window_end` (ISO 8601, UTC),
    each key of `by`, `value`, `stddev`, `ci_low`, `ci_high`.

    Args:
        spec: its path, or what `load` gives.
        until: only windows that have closed by then, a datetime with a zone or text in ISO 8601, as Beam YAML has it;
            None: by now, when the pipeline is built.
        shards: into how many parts the units are split, in the first run; None: as many as the size of the files asks
            for, and one for rows, of which the size is not known.

    Raises:
        SpecError: while the pipeline is built, before any data is read: the rows have no schema, or not the columns
            that the spec names.
        RefusedError: the folders hold another release.

    Example:
        `rows | slackwater.Release("wards.yaml")`, or `pipeline | slackwater.Release("wards.yaml")`.
    """

    def __init__(
        self, spec: str | Path | Spec, *, until: datetime | str | None = None, shards: int | None = None
    ) -> None:
        super().__init__()
        self._spec = spec if isinstance(spec, Spec) else load(spec)
        self._until = moment_of("until", until)
        self._shards = count_of("shards", shards)

    def expand(self, rows: Collections) -> beam.PCollection[Any]:
        spec = self._spec
        schema = None
        if isinstance(rows, beam.PCollection):
            if not rows.is_bounded:
                raise SpecError(
                    "the rows have no end; take `slackwater run --streaming`, which publishes window after window"
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
"""Beam takes `str | None` for something that only Python can read."""


def row_type(spec: Spec) -> Any:
    """The schema of estimates."""
    kinds = {name: _WHOLE if pa.types.is_integer(type_) else _TEXT for name, type_ in key_types(spec.queries).items()}
    fields: list[tuple[str, Any]] = [(name, str) for name in ("query", "kind", "window_start", "window_end")]
    fields += [*kinds.items(), *((name, _NUMBER) for name in ("value", "stddev", "ci_low", "ci_high"))]
    if any(query.adaptive is not None for query in spec.queries):
        fields.append((SAMPLED, _TRUTH))
    if any(query.adaptive is not None and query.adaptive.policy == "pegasus" for query in spec.queries):
        fields.append((GROUPED, _WHOLE))
    if any(query.over.name == "kdtree" for query in spec.queries):
        fields.append((SPREAD_OVER, _WHOLE))
    if any(query.quantiles for query in spec.queries):
        fields.append((QUANTILE, _NUMBER))
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
