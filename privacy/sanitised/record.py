"""All that is done to one record, and what it costs."""

from dataclasses import dataclass
from fractions import Fraction

from privacy.sanitised.attributes import Attribute, Curve
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitisation:
    """What is done to each record: its attributes, and nothing else of it comes out.

    Neighbours: two data sets of as many records that differ in one of them, by any values. Guarantee: (`epsilon`,
    `delta`)-differential privacy of all that is ever made of the sanitised records, if each is sanitised once.
    Source: Holohan, Leith, Mason (Information Sciences 305, 2015), theorem 4 (identity query) and theorem 5 (products
    of records); epsilons and deltas of attributes add up (docs/proofs/sanitised.md).
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if not names or len(set(names)) < len(names):
            raise ValueError("a record has at least one attribute, each with a name of its own")
        columns = [c for one in self.attributes for c in (one.points if isinstance(one, Curve) else (one.name,))]
        if len(set(columns)) < len(columns):
            raise ValueError("a column is sanitised twice; it is one attribute's, or one point's of a curve")

    @property
    def epsilon(self) -> float:
        """Of a record: the sum, rounded up."""
        return above(sum((Fraction(attribute.epsilon) for attribute in self.attributes), Fraction(0)))

    @property
    def delta(self) -> float:
        """The same."""
        return above(sum((Fraction(attribute.delta) for attribute in self.attributes), Fraction(0)))
