"""Several listed keys with marginals: a table of a window with margins."""

from pipelines.pages.pictures.base import Picture, Pictured, nothing_more


def _suits(subject: Pictured) -> bool:
    query = subject.query
    return len(query.listed) == len(query.by) > 1 and bool(query.marginals) and not subject.of


CROSSED = Picture(suits=_suits, document=nothing_more, whole=True)
