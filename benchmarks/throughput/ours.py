"""Run `slackwater run` on the benchmark's changelog: reading, bounding, noise and output.

python -m benchmarks.throughput.ours 'FOLDER/*.parquet' OUTPUT_FOLDER
"""

import shutil
import sys
from pathlib import Path

from benchmarks.throughput.generate import HIGHEST, WARDS
from pipelines.cli import program

SPEC = """\
release: throughput
changelog:
  format: parquet
  path: {files}
  entry: entry
  time: time
  order: seq
  before: before_
  after: after_
privacy:
  unit: entry
  epsilon: 1.0
  constraint: {{at_most: 4}}
schedule: {{start: 2024-01-01T00:00:00Z, every: 1d, until: 2025-01-01T00:00:00Z}}
queries:
  - name: score
    measure: {{sum: x, min: 0, max: {highest}}}
    by: {{ward: [{wards}]}}
    publish: [change]
strategy: disjoint
output: {{public: {output}/public, private: {output}/private}}
"""


def write_spec(files: str, output: Path) -> Path:
    """Write the spec for these files into `output`, and remove an earlier release there."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    path = output / "spec.yaml"
    path.write_text(SPEC.format(files=files, output=output, wards=", ".join(WARDS), highest=HIGHEST))
    return path


if __name__ == "__main__":
    sys.argv[:] = ["slackwater", "run", str(write_spec(sys.argv[1], Path(sys.argv[2]))), *sys.argv[3:]]
    sys.exit(program())
