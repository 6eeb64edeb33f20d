"""Read the numbers that `local estimate` has written, and compare them with the design of their survey."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.local.quality import METADATA, Told, read_told
from pipelines.local.survey import Survey
from privacy.local.candidates import LocalSeries
from privacy.local.document import mark
from transforms.common.errors import SpecError
from transforms.common.output_formats import OUTPUT_FORMATS, format_of, read_published
from transforms.common.shown_tables import for_spreadsheets
from transforms.common.sinks import read_bytes

Floats = NDArray[np.float64]

_TIME = pa.timestamp("us", "UTC")
_NUMBERS = ("value", "ci_low", "ci_high")
_WANTED = "give the file that `local estimate -o` has written"
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("kind", "answer"), pa.string()),
    **dict.fromkeys(("window_start", "window_end"), _TIME),
    **dict.fromkeys(_NUMBERS, pa.float64()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """One series.

    Attributes:
        value, low, high: Numbers and their 95 % intervals, [windows, answers], float64; not a number without reports.
    """

    kind: LocalSeries
    value: Floats
    low: Floats
    high: Floats


def read_estimates(path: str, survey: Survey) -> tuple[list[Estimated], Told | None]:
    """Return all series of a survey over the windows of the file, and the counts of reports, if the file has them.

    Raises:
        SpecError: There is no such file, or it is not of this survey.
    """
    format_ = format_of(path)
    if format_ is None:
        raise SpecError(
            f"{path}: the name of a file of estimates must end in {', '.join(f'.{name}' for name in OUTPUT_FORMATS)}"
        )
    try:
        content = read_bytes(path)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read ({type(error).__name__}); {_WANTED}") from None
    wrong = SpecError(f"{path}: not the numbers of this design, of {survey.release}; {_WANTED}")
    try:
        table = read_published(content, format_, _TYPES)
        said = (table.schema.metadata or {}).get(METADATA)
        told = None if said is None else read_told(said)
    except ValueError:
        raise wrong from None
    if told is not None and told.design != mark(survey.design):
        raise wrong
    rows = len(survey.publish) * len(survey.names)
    windows = table.num_rows // rows
    if not 0 < windows <= survey.design.windows or windows * rows != table.num_rows:
        raise wrong
    frame = pa.table(_frame(survey, windows))
    if not table.select(frame.column_names).equals(
        for_spreadsheets(frame) if OUTPUT_FORMATS[format_].formulas else frame
    ):
        raise wrong
    shape = (len(survey.publish), windows, len(survey.names))
    value, low, high = (table[name].to_numpy().astype(np.float64).reshape(shape) for name in _NUMBERS)
    if np.isinf((value, low, high)).any():
        raise wrong
    return [
        Estimated(kind=kind, value=value[place], low=low[place], high=high[place])
        for place, kind in enumerate(survey.publish)
    ], told


def _frame(survey: Survey, windows: int) -> dict[str, Any]:
    """Return the columns that identify each row."""
    answers, kinds = len(survey.names), len(survey.publish)
    starts = survey.start + survey.every * np.tile(np.repeat(np.arange(windows), answers), kinds)
    return {
        "kind": pa.array(np.repeat([*survey.publish], windows * answers), pa.string()),
        "window_start": pa.array(starts).cast(_TIME),
        "window_end": pa.array(starts + survey.every).cast(_TIME),
        "answer": pa.array([*survey.names] * (windows * kinds), pa.string()),
    }
