"""Table of sinks, by their keys under `output`. A new sink is a module here, an entry, and a section of the spec."""

from pipelines.sinks.base import SinkTable
from pipelines.sinks.bigquery import BigQueryTable

SINKS: dict[str, type[SinkTable]] = {"bigquery": BigQueryTable}
