"""The bounded aggregation with PipelineDP, in a separate environment.

    python benchmarks/throughput/pipelinedp.py local|beam 'FOLDER/*.parquet' RESULT.csv

PipelineDP has no changelogs: each mutation becomes a row that takes the old value from the old ward and one that brings
the new value to the new ward. It bounds an entry to 4 partitions of (day, ward), chosen at random, while we and DuckDB
keep the first 4 mutations.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pipeline_dp
import pyarrow.dataset as ds

DAY = 86_400
FIRST_DAY, DAYS = 19_723, 366  # 2024
PARTITIONS = [(FIRST_DAY + day, f"ward {ward:02d}") for day in range(DAYS) for ward in range(1, 21)]
COLUMNS = ["entry", "time", "before_ward", "before_x", "after_ward", "after_x"]


def contributions(row: dict[str, Any]) -> Iterator[tuple[str, tuple[int, str], int]]:
    """Yield (privacy id, partition, value), at most two for a mutation."""
    day = int(row["time"].timestamp()) // DAY
    if row["before_ward"] is not None:
        yield row["entry"], (day, row["before_ward"]), -row["before_x"]
    if row["after_ward"] is not None:
        yield row["entry"], (day, row["after_ward"]), row["after_x"]


def aggregate(rows: Any, backend: pipeline_dp.PipelineBackend) -> Any:
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-9)
    engine = pipeline_dp.DPEngine(accountant, backend)
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    parameters = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.SUM],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=4,
        max_contributions_per_partition=1,
        min_value=-10,
        max_value=10,
    )
    result = engine.aggregate(rows, parameters, extractors, public_partitions=PARTITIONS)
    accountant.compute_budgets()
    return result


def line(result: tuple[tuple[int, str], Any]) -> str:
    (day, ward), metrics = result
    return f"{day},{ward},{metrics.sum}"


def run_local(files: str, path: str) -> None:
    folder = str(Path(files).parent)
    batches = ds.dataset(folder, format="parquet").to_batches(columns=COLUMNS)
    rows = [part for batch in batches for row in batch.to_pylist() for part in contributions(row)]
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        for result in aggregate(rows, pipeline_dp.LocalBackend()):
            writer.writerow([line(result)])


def run_beam(files: str, path: str) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.io.ReadFromParquet(files, columns=COLUMNS) | beam.FlatMap(contributions)
        sums = aggregate(rows, pipeline_dp.BeamBackend())
        _ = sums | beam.Map(line) | beam.io.WriteToText(path, num_shards=1)


if __name__ == "__main__":
    {"local": run_local, "beam": run_beam}[sys.argv[1]](sys.argv[2], sys.argv[3])
