"""Sanitisation of one record, and its cost."""

from dataclasses import dataclass
from fractions import Fraction

from privacy.sanitised.attributes import Attribute
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitisation:
    """Sanitisation of each record: its attributes, and no other part of the record is published.

    Neighbours: two data sets of as many records that differ in one of them, by any values. Guarantee: (`epsilon`,
    `delta`)-differential privacy of everything computed from the sanitised records, if each is sanitised once.
    Source: Holohan, Leith, Mason (Information Sciences 305, 2015), theorem 4 (identity query) and theorem 5 (products
    of records); epsilons and deltas of attributes add up (docs/proofs/sanitised.md).
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if not names or len(set(names)) < len(names):
            raise ValueError("a record has at least one attribute, each with its own name")
        columns = [column for one in self.attributes for column in one.columns]
        if len(set(columns)) < len(columns):
            raise ValueError("a column is sanitised twice; it is one attribute's, or one point's of a curve")

    @property
    def epsilon(self) -> float:
        """Epsilon of a record: the sum, rounded up."""
        return above(sum((Fraction(attribute.epsilon) for attribute in self.attributes), Fraction(0)))

    @property
    def delta(self) -> float:
        """Delta of a record: the sum, rounded up."""
        return above(sum((Fraction(attribute.delta) for attribute in self.attributes), Fraction(0)))
