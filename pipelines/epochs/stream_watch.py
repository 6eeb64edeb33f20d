"""Whether a stream still publishes: a runner that has stopped must not look like a quiet database.

Windows close by the clock, also where nothing has changed. So one that is due and does not come tells of polls that
have ceased, of something that a runner has lost, or of one that is slower than the windows.
"""

from collections.abc import Callable

from pipelines.epochs.source_progress import source_passed
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text, now
from transforms.common.errors import SlackwaterError
from transforms.common.windows import Windows


class Watch:
    """Asked again and again.

    Args:
        bounds: of all windows.
        windows: the last that is to be published; None for all that `bounds` has.
        lag: how long after its end a window is due; microseconds.
        patience: how long one may be due and not come, or the next not after the last; microseconds.
    """

    def __init__(self, spec: Spec, bounds: Windows, *, windows: int | None, lag: int, patience: int) -> None:
        self._spec = spec
        self._bounds = bounds
        self._windows = windows
        self._lag = lag
        self._patience = patience
        self._published = 0
        self._well = self._asked = now()

    def overdue(self, published: Callable[[], int]) -> str | None:
        """What to say of a window that does not come, each time patience is over; None if all is well.

        Args:
            published: how many windows are; it is asked now and then, since that may take a while.
        """
        moment = now()
        if moment - self._asked < self._patience // 10:
            return None
        before, self._asked, self._published = self._published, moment, published()
        window = self._published + 1
        if self._published > before or not self._is_due(window, moment):
            self._well = moment
        if moment - self._well < self._patience:
            return None
        self._well = moment
        return (
            f"window {window}, which ended at {moment_text(self._bounds.end(window))}, has been due for more than "
            f"{self._patience / 1_000_000:,.0f} s, and the runner publishes nothing"
        )

    def _is_due(self, window: int, moment: int) -> bool:
        known = self._windows if self._bounds.ends is None else len(self._bounds.ends)
        if known is not None and window > known:
            return False
        end = self._bounds.end(window)
        if end + self._lag > moment:
            return False
        try:
            passed = source_passed(self._spec)
        except SlackwaterError:  # the step that polls says it; a moment's failure is over before patience is
            return True
        return passed is None or end <= passed
