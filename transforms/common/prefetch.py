"""Read ahead in a second thread: runners give a worker one thread, and Arrow decodes without Python's lock."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from transforms.common.memory import scaled

Out = TypeVar("Out")


def prefetch(items: Iterable[Out]) -> Iterator[Out]:
    """Yield the items in order; another thread makes up to two of them before they are needed.

    If memory is scarce, it makes fewer (transforms.common.memory).

    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(_next, iterator) for _ in range(scaled(2)))
        while (got := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(_next, iterator))
            yield got[0]


def _next(iterator: Iterator[Out]) -> tuple[Out] | None:
    for item in iterator:
        return (item,)
    return None
