"""What is usually done about answers that repeat: memoised randomised response, as in the first step of RAPPOR.

A device draws a randomised answer once for each true one, and reports it whenever that is true. The collector sees less
of an answer than by a new draw each week, and sees *when it changes*: where the report changes the answer has, for
certain. So no epsilon holds for a row of reports: one that changes cannot come from a person who never does.

Source: Erlingsson, Pihur, Korolova. RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response. CCS 2014.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from examples.employment.men import Answers
from privacy.local.client import DEVICE
from privacy.local.symbols import best_symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class Memoised:
    """What the collector sees.

    Attributes:
        levels: [weeks, answers], estimated.
        changed: how many changes of answers there were.
        shown: how many of them changed the report, which nothing else does.
    """

    levels: NDArray[np.float64]
    changed: int
    shown: int


def memoised(men: Answers, chosen: NDArray[np.int64], *, epsilon: float) -> Memoised:
    """A year of reports, `epsilon` for each different answer of a person; the last symbol is no answer."""
    answers = int(men.max()) + 1
    symbols = best_symbols(answers + 1, Fraction(epsilon))
    people = len(chosen)
    drawn = np.stack([symbols.draw(np.full(people, answer), DEVICE) for answer in range(answers + 1)])
    p, spread = float(symbols.other), float(symbols.spread)
    levels, changed, shown = np.empty((men.shape[1], answers)), 0, 0
    before = np.full(people, answers), drawn[answers]
    for week in range(men.shape[1]):
        now = men[chosen, week].astype(np.int64)
        now[now < 0] = answers
        reports = drawn[now, np.arange(people)]
        levels[week] = (np.bincount(reports, minlength=answers + 1)[:answers] - people * p) / spread
        changed += int((now != before[0]).sum())
        shown += int((reports != before[1]).sum())
        before = now, reports
    return Memoised(levels=levels, changed=changed, shown=shown)
