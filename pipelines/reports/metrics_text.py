"""Metrics with their labels, in Prometheus's text format and as one JSON document."""

from collections.abc import Sequence

from prometheus_client import Metric, generate_latest

from pipelines.epochs.results import Result

Value = float | dict[str, float] | None
"""Of a metric; by a label's value if there are several, and None if it is not known."""


def told(release: str, metrics: Sequence[Metric]) -> Result:
    """Those that are known."""
    found = [metric for metric in metrics if metric.samples]
    samples = [sample for metric in found for sample in metric.samples]
    document = {
        "release": release,
        "metrics": [{"name": s.name, "labels": s.labels, "value": s.value} for s in samples],
    }
    return document, generate_latest(_Collected(found)).decode().rstrip("\n")


def metric_of(name: str, meaning: str, value: Value, *, release: str, by: str) -> Metric:
    """One metric; without a sample if it is not known.

    >>> metric = metric_of("up", "Whether it is up.", {"0": 1.0}, release="wards", by="shard")
    >>> [(sample.name, sample.labels, sample.value) for sample in metric.samples]
    [('up', {'release': 'wards', 'shard': '0'}, 1.0)]
    """
    total = name.endswith("_total")
    metric = Metric(name.removesuffix("_total"), meaning, "counter" if total else "gauge")
    if isinstance(value, dict):
        for of, number in value.items():
            metric.add_sample(name, {"release": release, by: of}, number)
    elif value is not None:
        metric.add_sample(name, {"release": release}, value)
    return metric


class _Collected:
    """What the library asks for metrics."""

    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> list[Metric]:
        return self._found
