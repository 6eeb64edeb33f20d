"""A valid spec as text, and the errors of `load` for changed ones."""

from pathlib import Path

import pytest

from pipelines.spec.load import Spec, load
from transforms.common.errors import SpecError

GOOD = """\
release: wards
changelog:
  format: parquet
  path: data/*.parquet
  entry: stay
  time: at
privacy:
  unit: entry
  epsilon: 1.0
  delta: 0
  constraint: {at_most: 4}
schedule:
  start: 2026-01-01T00:00:00Z
  every: 1d
  until: 2026-02-01T00:00:00Z
queries:
  - name: beds
    measure: count
    where: "ward <> 'x'"
    by: {ward: [a, b, other]}
    publish: [level, change]
    weight: 1
  - name: waited
    measure: {mean: waited, min: 0, max: 240}
strategy: auto
output:
  public: out/public
  private: out/private
"""


def changed(old: str, new: str, text: str = GOOD) -> str:
    """Return `text` with its only `old` replaced."""
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in the text"
    return text.replace(old, new)


def loaded(folder: Path, text: str) -> Spec:
    """Return the spec that a text holds."""
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def problems(folder: Path, text: str) -> list[str]:
    """Return the lines of the error, without the folder: `spec.yaml:3: ...`."""
    with pytest.raises(SpecError) as caught:
        loaded(folder, text)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).split("\n")]
