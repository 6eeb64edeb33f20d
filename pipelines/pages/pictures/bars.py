"""Listed keys: bars with intervals for a window, ordered by size."""

from pipelines.pages.pictures.base import Picture, Pictured, nothing_more


def _suits(subject: Pictured) -> bool:
    return subject.query.cells > 1


BARS = Picture(suits=_suits, document=nothing_more)
