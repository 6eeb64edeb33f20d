"""A ParDo whose work runs in two threads: runners give a worker one, and Arrow and NumPy work outside of Python's lock.

For batch steps whose elements are few and large. At most three elements are held at once, and all results of a bundle
come out of that bundle. Results stand in the global window.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

_THREADS = 2


class Threaded(beam.DoFn):
    """Yields what `work(element)` yields.

    Args:
        work: a picklable function that shares nothing with its other calls.
    """

    def __init__(self, work: Callable[[Any], Iterable[Any]]) -> None:
        self._work = work

    def start_bundle(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS)
        self._running: deque[Future[list[Any]]] = deque()

    def process(self, element: Any) -> Iterator[Any]:
        self._running.append(self._threads.submit(self._run, element))
        if len(self._running) > _THREADS:
            yield from self._running.popleft().result()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        with self._threads:
            while self._running:
                for result in self._running.popleft().result():
                    yield GlobalWindows.windowed_value(result)

    def _run(self, element: Any) -> list[Any]:
        return list(self._work(element))
