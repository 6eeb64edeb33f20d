"""Memoised randomised response, the usual method for repeated answers, as in the first step of RAPPOR.

A device draws a randomised answer once for each true answer, and reports it whenever that answer is true. The collector
learns less about an answer than from a new draw each week, but learns *when it changes*: a changed report shows a
changed answer with certainty. So no epsilon holds for a sequence of reports: a sequence that changes cannot come from a
person who never does.

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
    """Results of the collector.

    Attributes:
        levels: [weeks, answers], estimated.
        changed: number of changes of answers.
        shown: number of these that changed the report; nothing else changes it.
    """

    levels: NDArray[np.float64]
    changed: int
    shown: int


def memoised(men: Answers, chosen: NDArray[np.int64], *, epsilon: float) -> Memoised:
    """Simulate a year of reports.

    Args:
        men: answers of each man, [men, weeks]; negative values are no answer.
        chosen: the man whose answers each person repeats, [people].
        epsilon: for each different answer of a person; no answer counts as one.
    """
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
