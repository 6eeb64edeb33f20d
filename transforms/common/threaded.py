"""A ParDo that works in two threads: runners give a worker one thread, and Arrow and NumPy work without Python's lock.

It is for batch steps with few large elements. At most three elements are held at once, or two in one thread if memory
is scarce (transforms.common.memory). All results of a bundle are output in that bundle, in the global window.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from transforms.common.memory import scaled

_THREADS = 2


class Threaded(beam.DoFn):
    """DoFn that yields the results of `work(element)`.

    Args:
        work: Picklable function that shares nothing between its calls.
    """

    def __init__(self, work: Callable[[Any], Iterable[Any]]) -> None:
        self._work = work

    def start_bundle(self) -> None:
        self._at_once = scaled(_THREADS)
        self._threads = ThreadPoolExecutor(self._at_once)
        self._running: deque[Future[list[Any]]] = deque()

    def process(self, element: Any) -> Iterator[Any]:
        self._running.append(self._threads.submit(self._run, element))
        if len(self._running) > self._at_once:
            yield from self._running.popleft().result()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        with self._threads:
            while self._running:
                for result in self._running.popleft().result():
                    yield GlobalWindows.windowed_value(result)

    def _run(self, element: Any) -> list[Any]:
        return list(self._work(element))
