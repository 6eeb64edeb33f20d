"""Run `slackwater run` on dated snapshots: reading, comparing, bounding, noise and output.

python -m benchmarks.snapshots.ours FOLDER DAYS OUTPUT_FOLDER
"""

import shutil
import sys
from datetime import timedelta
from pathlib import Path

from benchmarks.snapshots.generate import START
from benchmarks.throughput.generate import HIGHEST, WARDS
from pipelines.cli import main as slackwater

SPEC = """\
release: snapshots
changelog:
  format: snapshots
  path: {folder}/%Y-%m-%d.parquet
  entry: entry
privacy:
  unit: entry
  epsilon: 1.0
  constraint: {{at_most: 4}}
schedule: {{start: {start}, every: 1d, until: {until}}}
queries:
  - name: score
    measure: {{sum: x, min: 0, max: {highest}}}
    by: {{ward: [{wards}]}}
    publish: [change]
strategy: disjoint
output: {{public: {output}/public, private: {output}/private}}
"""


def write_spec(folder: str, days: int, output: Path) -> Path:
    """Write the spec for these snapshots into `output`, and remove an earlier release there.

    Args:
        folder: of the snapshots.
        days: number of snapshots.
        output: folder of the spec and the release.
    """
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    path = output / "spec.yaml"
    text = SPEC.format(
        folder=folder,
        output=output,
        start=f"{START:%Y-%m-%dT%H:%M:%SZ}",
        until=f"{START + (days - 1) * timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}",
        wards=", ".join(WARDS),
        highest=HIGHEST,
    )
    path.write_text(text)
    return path


if __name__ == "__main__":
    sys.exit(slackwater(["run", str(write_spec(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))]))
