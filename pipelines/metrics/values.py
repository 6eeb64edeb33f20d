"""Metrics with their labels, in the text format of Prometheus and as one JSON document."""

from dataclasses import dataclass, field
from typing import Any

from prometheus_client import Metric, generate_latest

from pipelines.common.value import Value

MetricValue = float | dict[str, float] | None
"""Value of a metric: one number, several by a label's value, or None if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics(Value):
    """The state of a release.

    Attributes:
        release: Name of the release.
        metrics: The known metrics, with their samples.
    """

    release: str
    metrics: tuple[Metric, ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater metrics --json`."""
        samples = [sample for metric in self.metrics for sample in metric.samples]
        values = [{"name": sample.name, "labels": sample.labels, "value": sample.value} for sample in samples]
        return {"release": self.release, "metrics": values}

    def text(self) -> str:
        """Return the text that `slackwater metrics` prints, in the format of Prometheus."""
        return generate_latest(self).decode().rstrip("\n")

    def collect(self) -> list[Metric]:
        """Return all metrics; the Prometheus client calls this method of a collector."""
        return [*self.metrics]


def known(release: str, metrics: list[Metric]) -> Metrics:
    """Return the metrics that have samples."""
    return Metrics(release=release, metrics=tuple(metric for metric in metrics if metric.samples))


def metric_of(name: str, meaning: str, value: MetricValue, *, release: str, by: str) -> Metric:
    """Return one metric; without a sample if its value is unknown.

    Args:
        name: Name of the metric.
        meaning: Help text of the metric.
        value: Its value or values.
        release: Name of the release, a label of each sample.
        by: Name of the label of several values.

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
