"""One ordered key: a histogram with error bars for a window, and a heat map of the cells over time."""

from pipelines.pages.pictures.base import Picture, Pictured, nothing_more


def _suits(subject: Pictured) -> bool:
    return len(subject.query.ordered) == 1


HISTOGRAM = Picture(suits=_suits, document=nothing_more, whole=True)
