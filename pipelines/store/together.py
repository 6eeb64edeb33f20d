"""What releases about the same people cost together: budgets add up, whatever the releases publish.

Sums are of the decimal numbers as specs write them, exactly: in floating point 0.1 + 0.7 is less than 0.8.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A release and its budget, as another one remembers it.

    Attributes:
        id: what distinguishes it from others wherever its folders are moved; empty if it has none yet.
        unit: whom it protects.
        public, private: its folders; local ones from the root.
    """

    id: str = ""
    release: str
    unit: str
    public: str
    private: str
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of the releases about the same people.

    Attributes:
        own: the release that was asked about, whether or not it has begun.
        others: those beside it that have begun, or of which this cannot be seen.
        there: folders of all that can be looked into, its own among them if it has one.
        unseen: folders that cannot.
    """

    own: Record
    others: tuple[Record, ...]
    there: tuple[Record, ...]
    unseen: tuple[str, ...]

    def document(self, *, begun: bool) -> dict[str, Any]:
        """What all cost together, as JSON.

        Args:
            begun: whether the release itself counts.
        """
        counted = [*self.others, *([self.own] if begun else [])]
        return {
            "epsilon": float(_sum(record.epsilon for record in counted)),
            "delta": float(_sum(record.delta for record in counted)),
            "at_least": bool(self.unseen),
            "releases": [
                {"release": r.release, "unit": r.unit, "epsilon": r.epsilon, "delta": r.delta} for r in counted
            ],
            "unseen": list(self.unseen),
        }

    def text(self, *, begun: bool = True) -> str:
        """The same for people."""
        counted = [(record.release, record) for record in self.others]
        counted += [(f"{self.own.release} (this one)", self.own)] if begun else []
        width = max(len(name) for name, _ in counted)
        units = len({record.unit for _, record in counted}) > 1
        epsilon = _decimal(_sum(record.epsilon for _, record in counted))
        delta = _decimal(_sum(record.delta for _, record in counted))
        lines = [f"Releases about the same people that are known here, {len(counted)}, whose budgets add up:"]
        for name, record in counted:
            budget = f"epsilon {_decimal(_exact(record.epsilon))}, delta {_decimal(_exact(record.delta))}"
            lines.append(f"  {name:<{width}}  {budget}{f', for each {record.unit}' if units else ''}")
        lines.append(f"  {'in sum':<{width}}  epsilon {epsilon}, delta {delta}")
        if self.unseen:
            lines.append(
                f"Together they are at least ({epsilon}, {delta}), and there may be more of them, since it is not "
                f"where it was, or cannot be read: {', '.join(self.unseen)}."
            )
        else:
            lines.append(
                f"Together they are ({epsilon}, {delta})-differentially private, and no more is promised to anyone who "
                "is in all of them."
            )
        return "\n".join(lines)


def _exact(number: float) -> Fraction:
    """The decimal number as it is printed."""
    return Fraction(repr(number))


def _sum(numbers: Iterable[float]) -> Fraction:
    return sum(map(_exact, numbers), Fraction(0))


def _decimal(exact: Fraction) -> str:
    """All digits of a fraction that is a sum of floats as they are printed."""
    with localcontext() as context:
        context.prec = 800  # from 1e308 down to 1e-324 and seventeen digits more
        number = (Decimal(exact.numerator) / Decimal(exact.denominator)).normalize()
        if number == number.to_integral_value() and number < 10**17:
            return str(int(number))
        return f"{number:g}"
