"""`slackwater metrics` of sanitised records: what the public side tells."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from prometheus_client import Metric

from pipelines.epochs.results import Result
from pipelines.reports.metrics_text import Value, metric_of, told
from pipelines.sanitised.published import PublishedRecords
from pipelines.sanitised.spec import SanitiseSpec, load_sanitise
from pipelines.sanitised.store import MANIFEST
from pipelines.store.folder import folder_at
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError


def metrics_of_records(path: str | Path, *, private: bool) -> Result:
    """
    Raises:
        SpecError: private metrics are asked for, of which there are none.
        RefusedError: the public folder is not whole.
    """
    if private:
        raise SpecError(f"--private: sanitised records have public metrics alone; leave it out for {path}")
    spec = load_sanitise(path)
    folder = spec.output.public
    refuse_unreachable([folder])
    there = folder_at(folder, private=False).read(MANIFEST) is not None
    return told(spec.release, [*_metrics(spec, PublishedRecords(folder) if there else None)])


def _metrics(spec: SanitiseSpec, found: PublishedRecords | None) -> Iterator[Metric]:
    def metric(name: str, meaning: str, value: Value) -> Metric:
        return metric_of(f"slackwater_{name}", meaning, value, release=spec.release, by="")

    epochs, records = ((), 0) if found is None else (found.commits, found.count)
    record = spec.record if found is None else found.record
    committed = datetime.fromisoformat(epochs[-1].committed_at).timestamp() if epochs else None
    yield metric("epochs_published_total", "Epochs that are published.", len(epochs))
    yield metric("last_commit_timestamp_seconds", "When the last epoch was committed.", committed)
    yield metric("records_published_total", "Sanitised records that are published.", records)
    yield metric("record_epsilon", "The epsilon of each record, all attributes together.", record.epsilon)
    yield metric("record_delta", "The delta of each record.", record.delta)
