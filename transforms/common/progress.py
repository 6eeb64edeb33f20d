"""How many rows the workers of this process have seen, by phase: what a progress display reads.

Exact facts about the data, so private: shown to the person who runs the job, and nowhere stored. A remote runner's
workers count in their own processes, where nobody looks.
"""

import threading
from collections import Counter

_rows: Counter[str] = Counter()
_lock = threading.Lock()


def advance(phase: str, rows: int) -> None:
    """Note that `rows` more rows went through `phase`."""
    with _lock:
        _rows[phase] += rows


def seen(phase: str) -> int:
    """Rows that went through `phase` since `reset`."""
    with _lock:
        return _rows[phase]


def reset() -> None:
    """Forget all counts; a new run begins."""
    with _lock:
        _rows.clear()
