"""Quantiles: a fan over time, each with its interval."""

from collections.abc import Sequence
from typing import Any

from pipelines.pages.pictures.base import Picture, Pictured
from transforms.release.quantile_tables import QUANTILE


def middle_share(shares: Sequence[float]) -> float:
    """Return the quantile that the page shows first: the median, or the first one."""
    return 0.5 if 0.5 in shares else shares[0]


def _suits(subject: Pictured) -> bool:
    return QUANTILE in dict(subject.query.by)


def _document(subject: Pictured) -> dict[str, Any]:
    """Return the quantiles, in the order of the cells, and which place their key has."""
    names = [name for name, _ in subject.query.by]
    return {
        "shares": [float(str(share)) for share in dict(subject.query.listed)[QUANTILE]],
        "key": names.index(QUANTILE),
    }


FAN = Picture(suits=_suits, document=_document, whole=True)
