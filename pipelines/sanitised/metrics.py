"""`slackwater metrics` of sanitised records, from the public side."""

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import Metric

from pipelines.common.errors import ArgumentError
from pipelines.metrics.values import Metrics, MetricValue, known, metric_of
from pipelines.sanitised.published import PublishedRecords
from pipelines.sanitised.spec import SanitiseSpec, load_sanitise
from pipelines.store.folder import folder_at
from pipelines.store.shown import MANIFEST
from transforms.common.cloud import refuse_unreachable


def metrics(path: str, *, private: bool) -> Metrics:
    """Read the state of sanitised records from their public folder.

    Raises:
        SpecError: Private metrics are requested, which do not exist.
        RefusedError: The public folder is damaged.
    """
    if private:
        raise ArgumentError("private", f"sanitised records have only public metrics; leave it out for {path}")
    spec = load_sanitise(path)
    folder = spec.output.public
    refuse_unreachable([folder])
    there = folder_at(folder, private=False).read(MANIFEST) is not None
    return known(spec.release, [*_metrics(spec, PublishedRecords(folder) if there else None)])


def _metrics(spec: SanitiseSpec, found: PublishedRecords | None) -> Iterator[Metric]:
    def metric(name: str, meaning: str, value: MetricValue) -> Metric:
        return metric_of(f"slackwater_{name}", meaning, value, release=spec.release, by="")

    epochs, records = ((), 0) if found is None else (found.commits, found.count)
    record = spec.record if found is None else found.record
    committed = datetime.fromisoformat(epochs[-1].committed_at).timestamp() if epochs else None
    yield metric("epochs_published_total", "Number of published epochs.", len(epochs))
    yield metric("last_commit_timestamp_seconds", "Time of the last commit, in seconds since the epoch.", committed)
    yield metric("records_published_total", "Number of published sanitised records.", records)
    yield metric("record_epsilon", "Epsilon of each record, for all attributes together.", record.epsilon)
    yield metric("record_delta", "Delta of each record, for all attributes together.", record.delta)
