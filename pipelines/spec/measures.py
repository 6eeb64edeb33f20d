"""The shape of `measure:` in a query of a spec."""

from typing import Any, Literal, Self

from pydantic import (
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from pipelines.spec.errors import refuse, wrong
from pipelines.spec.fields import (
    FiniteNumber,
    Section,
    Text,
)
from pipelines.spec.words import not_one_of, show
from privacy.measure import COUNTS, KINDS, VALUED, Measure

_MEASURES = "count, units, or one of sum, mean, second_moment, variance with its column, min and max"


class MeasureSection(Section):
    """`count` or `units` (no key at all), or one statistic of a column between bounds."""

    sum: Text | None = None
    mean: Text | None = None
    second_moment: Text | None = None
    variance: Text | None = None
    min: FiniteNumber | None = None
    max: FiniteNumber | None = None
    invalid: Literal["drop", "min", "max"] = "drop"
    _units: bool = PrivateAttr(default=False)

    @model_validator(mode="wrap")
    @classmethod
    def _word(cls, raw: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(raw, str) and raw in COUNTS:
            section = handler({})
            section._units = raw == "units"
            return section
        if isinstance(raw, str):
            if raw in KINDS:
                raise wrong(f"{raw} needs a column and bounds: {{{raw}: column, min: 0, max: 10}}")
            raise wrong(not_one_of(raw, KINDS))
        if not isinstance(raw, dict) or not raw:
            raise wrong(f"expected {_MEASURES}, not {show(raw)}")
        return handler(raw)

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return {**written, "units": True} if self._units else written

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            return self
        given = [kind for kind in VALUED if getattr(self, kind) is not None]
        if len(given) != 1:
            refuse([((), f"expected {_MEASURES}, not {' and '.join(given) or 'none of them'}")])
        low = 0 if self.max is None or self.max > 0 else self.max - 10
        high = 10 if self.min is None or self.min < 10 else self.min + 10
        refuse(
            ((key,), f"missing; a {given[0]} is clamped to bounds that you choose, add {key}: {example:g}")
            for key, bound, example in (("min", self.min, low), ("max", self.max, high))
            if bound is None
        )
        try:
            self.measure()
        except ValueError as error:
            refuse([(("min",), str(error))])
        return self

    @property
    def column(self) -> str | None:
        """The column that is measured; None for counts."""
        return self.sum or self.mean or self.second_moment or self.variance

    @property
    def ratio(self) -> bool:
        """Whether it is a mean, a second moment or a variance, whose error depends on the data."""
        return self.column is not None and self.sum is None

    @property
    def units(self) -> bool:
        """Whether units count, once in each cell, and not entries."""
        return self._units

    def measure(self) -> Measure:
        """Return the measure, with the default grid of values."""
        for kind in VALUED:
            if getattr(self, kind) is not None and self.min is not None and self.max is not None:
                return Measure(kind=kind, low=self.min, high=self.max)
        return Measure(kind="units" if self._units else "count")
