"""Results of the layers of an audit."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """Result of one layer.

    Attributes:
        name: Name of the layer.
        question: The question that it answers.
        tried: What was tried, with counts.
        found: What was measured, as sentences.
        faults: What contradicts the claim, as sentences; empty if nothing does.
        untested: What the layer cannot test here, as sentences.
        measures: Numbers for programs.
    """

    name: str
    question: str
    tried: dict[str, int]
    found: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    measures: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts the claim."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "layer": self.name,
            "question": self.question,
            "passed": self.passed,
            "tried": self.tried,
            "found": [*self.found],
            "faults": [*self.faults],
            "untested": [*self.untested],
            "measures": self.measures,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "LayerResult":
        """Return the result that `to_json` wrote."""
        texts = {name: tuple(document[name]) for name in ("found", "faults", "untested")}
        return cls(
            name=document["layer"],
            question=document["question"],
            tried=document["tried"],
            measures=document["measures"],
            **texts,
        )
