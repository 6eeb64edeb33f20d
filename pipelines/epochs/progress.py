"""Show the progress of a run: a bar on a terminal, plain lines elsewhere, nothing for runs shorter than two seconds.

Rows are counted twice, when they are read and when they are bounded, since each takes about as long. The total is
estimated from the first Parquet footer; for text files the display has a rate but no time left. Rows that are processed
again after a failure count again, so the display stops at 100 %. On a remote runner the workers count elsewhere, and
the display shows only the elapsed time.
"""

import sys
import threading
import time
from types import TracebackType

from tqdm import tqdm

from transforms.common import progress
from transforms.sources.columns.layout import Layout
from transforms.sources.formats.table import FORMATS

PATIENCE = 2.0
"""Seconds before anything is shown."""

LINE_EVERY = 10.0
"""Seconds between plain lines."""


class Display:
    """Watches the counters of `transforms.common.progress` while the `with` block runs."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Display":
        progress.reset()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        began = time.monotonic()
        if self._done.wait(PATIENCE):
            return
        total = _expected_rows(self._layout)
        if not sys.stderr.isatty():
            while not self._done.wait(LINE_EVERY):
                print(_line(_steps(), total, time.monotonic() - began), file=sys.stderr, flush=True)
            return
        with tqdm(total=None if total is None else 2 * total, unit=" rows", unit_scale=0.5, leave=False) as bar:
            bar.start_t -= PATIENCE
            while not self._done.wait(0.2):
                bar.update((_steps() if total is None else min(_steps(), 2 * total)) - bar.n)


def _expected_rows(layout: Layout) -> int | None:
    """Estimate the rows of all files from the footer of the first file and the sizes of all; None if unknown."""
    rows = FORMATS[layout.source.format].rows
    if rows is None or not layout.files:
        return None
    first = layout.files[0]
    return max(1, rows(first.path) * sum(file.size for file in layout.files) // first.size)


def _steps() -> int:
    return progress.seen("read") + progress.seen("bound")


def _line(steps: int, total: int | None, seconds: float) -> str:
    """Return one line of progress.

    >>> _line(5_000_000, 10_000_000, 10)
    'working: 25 %, 250,000 rows/s, 30 s left'
    >>> _line(30_000_000, 10_000_000, 10)
    'working: 100 %, 1,500,000 rows/s, 0 s left'
    >>> _line(0, None, 10)
    'working: 10 s'
    """
    if steps == 0:
        return f"working: {seconds:.0f} s"
    rate = steps / seconds
    if total is None:
        return f"working: {seconds:.0f} s, {rate / 2:,.0f} rows/s"
    done = min(steps, 2 * total)
    left = (2 * total - done) / rate
    return f"working: {100 * done / (2 * total):.0f} %, {rate / 2:,.0f} rows/s, {left:.0f} s left"
