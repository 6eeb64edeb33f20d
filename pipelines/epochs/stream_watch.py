"""Watch whether a stream still publishes: a stopped runner must not look like a database without changes.

Windows close by the clock, even if nothing has changed. So if a due window is not published, the polls have stopped,
the runner has lost something, or the runner is slower than the windows.
"""

import time
from collections.abc import Callable

from pipelines.epochs.source_progress import source_passed
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text, now
from transforms.common.errors import SlackwaterError
from transforms.common.windows import Windows


class Watch:
    """Finds windows that are overdue.

    Args:
        spec: Spec of the release.
        bounds: Bounds of all windows.
        windows: Number of windows to publish; None: all windows of `bounds`.
        lag: Time from a window's end until it is due, in microseconds.
        patience: How long a window may be due without being published, or without the next one, in microseconds.
    """

    def __init__(self, spec: Spec, bounds: Windows, *, windows: int | None, lag: int, patience: int) -> None:
        self._spec = spec
        self._bounds = bounds
        self._windows = windows
        self._lag = lag
        self._patience = patience
        self._published = 0
        self._well = self._asked = _elapsed()

    def overdue(self, published: Callable[[], int]) -> str | None:
        """Return a message about an overdue window, each time patience is over; None if no window is overdue.

        Args:
            published: Returns the number of published windows; it may be slow, so it is called rarely.
        """
        moment = _elapsed()
        if moment - self._asked < self._patience // 10:
            return None
        before, self._asked, self._published = self._published, moment, published()
        window = self._published + 1
        if self._published > before or not self._is_due(window):
            self._well = moment
        if moment - self._well < self._patience:
            return None
        self._well = moment
        return (
            f"window {window}, which ended at {moment_text(self._bounds.end(window))}, has been due for more than "
            f"{self._patience / 1_000_000:,.0f} s, and the runner publishes nothing"
        )

    def _is_due(self, window: int) -> bool:
        known = self._windows if self._bounds.ends is None else len(self._bounds.ends)
        if known is not None and window > known:
            return False
        end = self._bounds.end(window)
        if end + self._lag > now():
            return False
        try:
            passed = source_passed(self._spec)
        except SlackwaterError:  # the step that polls reports it; short failures end before patience does
            return True
        return passed is None or end <= passed


def _elapsed() -> int:
    """Return microseconds since some moment; the machine's clock may be set back meanwhile."""
    return time.monotonic_ns() // 1000
