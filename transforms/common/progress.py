"""Numbers of rows that the workers of this process have processed, by phase, for a progress display.

They are exact facts about the data and therefore private: they are shown to the person who runs the job, and never
stored. Workers of a remote runner count in their own processes, and these counts are not read.
"""

import threading
from collections import Counter

_rows: Counter[str] = Counter()
_lock = threading.Lock()


def advance(phase: str, rows: int) -> None:
    """Count `rows` more rows of `phase`."""
    with _lock:
        _rows[phase] += rows


def seen(phase: str) -> int:
    """Return the number of rows of `phase` since `reset`."""
    with _lock:
        return _rows[phase]


def reset() -> None:
    """Set all counts to zero for a new run."""
    with _lock:
        _rows.clear()
