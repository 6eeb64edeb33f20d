"""A survey's two public files, whose page has all that a page can have: names like HTML, unknown numbers, all noise."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from pipelines import cli
from pipelines.local.survey import read_survey
from tests.pipelines.report.report_page import NASTY
from transforms.common.shown_tables import write_shown

SPEC = f"""\
release: work
local:
  answers: [employed, '{NASTY}', =an answer of which the name is longer than a small chart is wide on a phone]
  people: 90000
  epsilon: 2.0
  delta: 1.0e-6
  constraint: {{at_most: 3}}
  publish: [level, change]
  method: mutations
schedule: {{start: 2025-01-06T00:00:00Z, every: 1w, until: 2025-06-30T00:00:00Z}}
"""
WINDOWS = 24
"""Of 25: the last has not closed."""


def survey_files(folder: Path) -> tuple[str, str]:
    """The design, and numbers as `local estimate` writes them: of the third answer nobody has told until April."""
    (folder / "survey.yaml").write_text(SPEC)
    design, estimates = f"{folder}/design.json", f"{folder}/estimates.csv"
    assert cli.main(["local", "plan", f"{folder}/survey.yaml", "-o", design]) == 0
    survey = read_survey(design)
    level = np.array([[20_000 + 1_000 * window, -3_000 * window, 500] for window in range(WINDOWS)], dtype=float)
    change = np.diff(level, axis=0, prepend=0)
    half = np.array([[3_000, 4_000, 60_000]] * WINDOWS, dtype=float)
    unknown = np.zeros_like(level, dtype=bool)
    unknown[:12, 2] = True
    starts = survey.start + survey.every * np.repeat(np.arange(WINDOWS), 3)
    tables = []
    for kind, value in (("level", level), ("change", change)):
        columns = {"value": value, "stddev": half / 2, "ci_low": value - half, "ci_high": value + half}
        frame = {
            "kind": pa.array([kind] * value.size),
            "window_start": pa.array(starts).cast(pa.timestamp("us", "UTC")),
            "window_end": pa.array(starts + survey.every).cast(pa.timestamp("us", "UTC")),
            "answer": pa.array([*survey.names] * WINDOWS),
        }
        numbers = {name: pa.array(column.ravel(), mask=unknown.ravel()) for name, column in columns.items()}
        tables.append(pa.table({**frame, **numbers}))
    write_shown(pa.concat_tables(tables), estimates, local=lambda moment: moment)
    return design, estimates
