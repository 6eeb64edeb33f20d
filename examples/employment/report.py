"""A year of a million devices: each randomises the answers of one man, and sends only the result.

    python -m examples.employment.report        reads out/employment/design.json, writes out/employment/reports/

It also writes truth.parquet, which exists only because these people are synthetic.
"""

from pathlib import Path

import pipelines  # noqa: F401  # before Beam: it hides a warning of Beam that does not apply here

# isort: split
import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from examples.employment.men import changes_of, levels_of, read_men, resampled
from pipelines.epochs.flags import begin_pipeline
from pipelines.local.survey import read_survey
from transforms.common.ipc import to_bytes
from transforms.common.sinks import WriteTables
from transforms.local.randomise import BLOCK, Randomise

OUT = Path("out/employment")


def main() -> None:
    if (OUT / "truth.parquet").exists():
        print(f"{OUT}/reports: the devices have reported already, and each reports once")
        return
    survey = read_survey(str(OUT / "design.json"))
    men = read_men()
    chosen = resampled(men, survey.people)
    batches = (
        to_bytes(changes_of(men, chosen[first : first + BLOCK], first=first)) for first in range(0, len(chosen), BLOCK)
    )
    with begin_pipeline([]) as pipeline:
        (
            pipeline
            | beam.Create(batches)
            | Randomise(survey.design, people=survey.people, most_epsilon=1.0)
            | WriteTables(str(OUT / "reports"))
        )
    levels = levels_of(men, chosen)
    truth = {name: levels[:, number] for number, name in enumerate(survey.names)}
    pq.write_table(pa.table({"week": np.arange(len(levels)), **truth}), OUT / "truth.parquet")
    print(f"{survey.people:,} devices have reported into {OUT}/reports/")


if __name__ == "__main__":
    main()
