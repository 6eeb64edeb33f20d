"""Time and memory of a million devices and their collector, over 52 windows.

    python -m benchmarks.local.speed        # a minute

Each device reports a sign in each window: 52 million reports, in files of 65,536 people and one window. `Randomise`
simulates devices and `slackwater local estimate` collects reports, each in a separate process.
"""

import argparse
import sys
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa

from benchmarks.emptied import emptied
from benchmarks.throughput.process import measure
from pipelines.epochs.flags import begin_pipeline
from pipelines.local.survey import read_survey
from transforms.common.ipc import to_bytes
from transforms.common.sinks import WriteTables
from transforms.local.randomise import BLOCK, CHANGES, Randomise

OUT = Path("out/benchmarks/local-speed")
PEOPLE, WINDOWS = 1_000_000, 52
ANSWERS = (2, 1000)

SPEC = """\
release: speed-{answers}
local:
  answers: [{names}]
  people: {people}
  epsilon: 1.0
  constraint: {{at_most: 4}}
  publish: [level, change]
  method: signs
schedule: {{start: 2025-01-06T00:00:00Z, every: 1w, until: 2026-01-05T00:00:00Z}}
"""


def changes(first: int, people: int, answers: int) -> pa.Table:
    """Return four changes of each person, at random times.

    Args:
        first: number of the first person.
        people: number of people.
        answers: number of answers.
    """
    random = np.random.default_rng()
    window = np.argsort(random.random((people, WINDOWS)), axis=1)[:, :4].ravel().astype(np.int32)
    person = np.repeat(np.arange(first, first + people), 4)
    answer = random.integers(0, answers, 4 * people).astype(np.int32)
    return pa.Table.from_arrays([pa.array(column) for column in (person, window, answer)], schema=CHANGES)


def send(folder: Path, answers: int) -> None:
    """Write all reports of all devices."""
    survey = read_survey(str(folder / "design.json"))
    blocks = range(0, PEOPLE, BLOCK)
    batches = (to_bytes(changes(first, min(BLOCK, PEOPLE - first), answers)) for first in blocks)
    with begin_pipeline([]) as pipeline:
        randomised = pipeline | beam.Create(batches) | Randomise(survey.design, people=PEOPLE, most_epsilon=1.0)
        randomised | WriteTables(str(folder / "reports"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "send", nargs="*", help="internal, for the process of the devices: a folder, and a number of answers"
    )
    if given := parser.parse_args().send:
        folder, answers = given
        send(Path(folder), int(answers))
        return
    emptied(OUT)
    print("| answers | what | seconds | peak memory, GB |\n|--:|---|--:|--:|", flush=True)
    for answers in ANSWERS:
        folder = OUT / str(answers)
        folder.mkdir()
        names = ", ".join(f"a{number}" for number in range(answers))
        (folder / "survey.yaml").write_text(SPEC.format(answers=answers, names=names, people=PEOPLE))
        design, numbers = str(folder / "design.json"), str(folder / "numbers.parquet")
        slackwater = [sys.executable, "-m", "pipelines", "local"]
        measure([*slackwater, "plan", str(folder / "survey.yaml"), "-o", design], folder / "plan.log")
        for what, command in (
            ("devices", [sys.executable, "-m", "benchmarks.local.speed", str(folder), str(answers)]),
            ("collector", [*slackwater, "estimate", design, f"{folder}/reports/*.parquet", "-o", numbers]),
        ):
            used = measure(command, folder / f"{what}.log")
            print(f"| {answers:,} | {what} | {used.seconds:.0f} | {used.peak / 1e9:.2f} |", flush=True)


if __name__ == "__main__":
    main()
