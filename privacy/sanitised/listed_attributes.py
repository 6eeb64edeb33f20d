"""Attributes with listed values, a category and a set: their sanitisation, its cost and its error."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.counted import counted
from privacy.noise.odds import Integers
from privacy.sanitised.attribute_checks import refuse_budget
from privacy.sanitised.finite import Exact
from privacy.sanitised.grid import Floats
from privacy.sanitised.lower_bounds import finite_bound, packing_bound, sets_bound
from privacy.sanitised.metric_response import MetricResponse, best_response
from privacy.sanitised.randomised_response import RandomisedResponse
from privacy.sanitised.subset_response import SubsetResponse


class OfValues:
    """Part of attributes with listed values, of which shares are estimated."""

    numeric: ClassVar[bool] = False
    estimates: ClassVar[str | None] = "shares"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class Category(OfValues):
    """A value of a list, with equal distances or given ones.

    Neighbours: one record with any two of the values. Guarantee: (epsilon, delta), checked here or by the response.

    Attributes:
        distances: [values][values]; None if all are 1 apart.
    """

    kind: ClassVar[str] = "category"

    name: str
    values: tuple[str, ...]
    missing: int
    epsilon: float
    delta: float
    response: RandomisedResponse | MetricResponse
    distances: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        refuse_budget(self.epsilon, self.delta)
        if self.response.values != len(self.values) or not 0 <= self.missing < len(self.values):
            raise ValueError(f"{self.name}: the response is for another number of values")
        if not self.response.covers(self.epsilon, self.delta):
            raise ValueError(f"{self.name}: the response costs more than epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def planned(
        name: str,
        values: Sequence[str],
        *,
        missing: str,
        epsilon: float,
        delta: float = 0.0,
        distances: Floats | None = None,
        probabilities: Sequence[Sequence[Exact]] | None = None,
    ) -> "Category":
        """Return the attribute with the best response that epsilon and delta allow.

        Args:
            name: name of the attribute.
            values: the listed values.
            missing: the listed value that replaces a missing or unlisted one.
            epsilon, delta: privacy parameters of the attribute.
            distances: float64 [values, values], a metric; if given, the worst expected distance is minimised.
            probabilities: a table of the user, [values][values], instead of a response that is chosen here.
        """
        refuse_budget(epsilon, delta)
        at_least("values", len(values), 2)
        response: RandomisedResponse | MetricResponse
        if probabilities is not None:
            response = MetricResponse.own(probabilities, epsilon=epsilon, delta=delta)
        elif distances is not None:
            response = best_response(distances, epsilon=epsilon, delta=delta)
        else:
            response = RandomisedResponse.optimal(len(values), epsilon=epsilon, delta=delta)
        return Category(
            name=name,
            values=tuple(values),
            missing=list(values).index(missing),
            epsilon=epsilon,
            delta=delta,
            response=response,
            distances=None if distances is None else tuple(map(tuple, distances.tolist())),
        )

    @property
    def width(self) -> int:
        return 1

    @property
    def asked(self) -> str:
        """A sentence that describes the estimates."""
        return f"The share of all records of each of {counted(len(self.values), 'value')}."

    @property
    def missing_text(self) -> str:
        """The value that counts for a missing or unlisted one."""
        return self.values[self.missing]

    @property
    def errors(self) -> str:
        """Quantity that `error` describes."""
        return "category" if self.distances is None else "distance"

    @cached_property
    def error(self) -> float:
        """Largest expected distance of an output: the probability of another value if all distances are 1."""
        return self.response.error_over(self.distances)

    @cached_property
    def lower_bound(self) -> float:
        if self.distances is None:
            return packing_bound(1.0, len(self.values), epsilon=self.epsilon, delta=self.delta)
        return finite_bound(np.array(self.distances), epsilon=self.epsilon, delta=self.delta)

    @property
    def mechanism(self) -> str:
        return self.response.text(near=self.distances is not None)

    def sample(self, codes: Integers) -> Integers:
        return self.response.sample(codes[:, 0])[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset(OfValues):
    """A set of some of these elements; a missing set is empty.

    Neighbours: one record with any two sets. Guarantee: (epsilon, delta), checked here.
    """

    kind: ClassVar[str] = "set"
    missing_text: ClassVar[str] = "an empty set"
    errors: ClassVar[str] = "set"

    name: str
    values: tuple[str, ...]
    epsilon: float
    delta: float
    response: SubsetResponse

    def __post_init__(self) -> None:
        refuse_budget(self.epsilon, self.delta)
        if self.response.elements != len(self.values):
            raise ValueError(f"{self.name}: the response is for another number of elements")
        if self.response.delta_at(self.epsilon) > Fraction(self.delta):
            raise ValueError(f"{self.name}: the response costs more than epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def planned(
        name: str, values: Sequence[str], *, at_most: int | None, epsilon: float, delta: float = 0.0
    ) -> "Subset":
        """Return the attribute with the best response that epsilon and delta allow.

        Args:
            name: name of the attribute.
            values: the listed elements.
            at_most: largest number of elements of a set that count, the first in the list; None: all.
            epsilon, delta: privacy parameters of the attribute.
        """
        refuse_budget(epsilon, delta)
        response = SubsetResponse.optimal(len(values), at_most=at_most, epsilon=epsilon, delta=delta)
        return Subset(name=name, values=tuple(values), epsilon=epsilon, delta=delta, response=response)

    @property
    def width(self) -> int:
        return len(self.values)

    @property
    def asked(self) -> str:
        """A sentence that describes the estimates."""
        return f"The share of all records that have each of {counted(len(self.values), 'element')}."

    @property
    def error(self) -> float:
        """Expected number of elements that are wrongly in or out."""
        return self.response.error

    @property
    def lower_bound(self) -> float:
        at_most = min(self.response.at_most, len(self.values))
        return sets_bound(len(self.values), at_most, epsilon=self.epsilon, delta=self.delta)

    @property
    def mechanism(self) -> str:
        return f"each element turned over with probability {self.error / len(self.values):.4g}"

    def sample(self, codes: Integers) -> Integers:
        return self.response.sample(codes)
