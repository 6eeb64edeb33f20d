"""Errors of multi-freq-ldpy, computed in a separate environment, and the privacy cost of its sequences of reports.

https://github.com/hharcolezi/multi-freq-ldpy: longitudinal protocols with two rounds, of which the first is memoised
(Arcolezi et al. 2021, after RAPPOR). `multifreq_peer.py` runs its code to make reports and estimates.
"""

import json
import math
import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import environment

PINS = Path(__file__).with_suffix(".txt")
PEER = Path(__file__).with_name("multifreq_peer.py")


def python(folder: Path) -> str | None:
    """Return the interpreter of its environment; None, with a message, if it cannot be installed."""
    return environment.python(folder, peer="multi-freq-ldpy", pins=PINS)


def shares(program: str, answers: NDArray[np.int64], folder: Path, *, epsilon: float) -> dict[str, NDArray[np.float64]]:
    """Return estimated shares [runs, symbols] of all symbols by protocol.

    Args:
        program: interpreter of its environment.
        answers: true symbols, [runs, people].
        folder: for the file that passes the answers.
        epsilon: for each different answer of a person.
    """
    path = folder / "answers.npy"
    np.save(path, answers)
    asked = {"answers": str(path), "symbols": int(answers.max()) + 1, "epsilon": epsilon}
    done = subprocess.run([program, str(PEER)], input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True)
    return {name: np.array(found) for name, found in json.loads(done.stdout).items()}


def loss_of_a_change(*, symbols: int, epsilon: float, weeks: int) -> float:
    """Return the exact privacy loss of L-GRR between a person who never changes and one who changes once, half-way.

    Each answer has a memoised symbol, drawn once, which a second round randomises again each week. So a sequence of
    reports reveals how often each symbol occurs in each half.

    Args:
        symbols: number of symbols, 3.
        epsilon: for each different answer of a person.
        weeks: number of reports.

    Raises:
        ValueError: there are not three symbols.
    """
    half = weeks // 2
    p1, q1 = _response(epsilon, symbols)
    odds = math.exp(epsilon / 2)
    p2 = (q1 - odds * p1) / (-p1 * odds + symbols * q1 * odds - q1 * odds - p1 * (symbols - 1) + q1)
    q2 = (1 - p2) / (symbols - 1)
    counts = np.array([(a, b, half - a - b) for a in range(half + 1) for b in range(half + 1 - a)])
    if symbols != 3:
        raise ValueError(f"symbols={symbols} is unsupported; only 3 is implemented")
    rows = counts * math.log(p2 / q2) + half * math.log(q2)  # of a half, for each memoised symbol
    memos = [np.log(np.where(np.arange(3) == answer, p1, q1)) for answer in (0, 1)]

    def log_sum(terms: NDArray[np.float64]) -> NDArray[np.float64]:
        most = terms.max(axis=-1, keepdims=True)
        total: NDArray[np.float64] = most[..., 0] + np.log(np.exp(terms - most).sum(axis=-1))
        return total

    changed = log_sum(rows + memos[0])[:, None] + log_sum(rows + memos[1])[None, :]
    never = log_sum(rows[:, None, :] + rows[None, :, :] + memos[0])
    return float(np.abs(changed - never).max())


def _response(epsilon: float, symbols: int) -> tuple[float, float]:
    truth = math.exp(epsilon) / (math.exp(epsilon) + symbols - 1)
    return truth, (1 - truth) / (symbols - 1)
