"""The cost of sanitising and the error of each attribute, known before any data is read, and published."""

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from pipelines.sanitised.spec import SanitiseSpec
from pipelines.store.record import CODEC, VERSION
from privacy.json_values import indented, parsed
from privacy.sanitised.attributes import Attribute
from privacy.sanitised.record import Sanitisation
from privacy.upward import shown
from transforms.common.errors import RefusedError
from transforms.common.output_formats import OUTPUT_FORMATS
from transforms.sources.inspection import rests_on

_CURVE = "of the points' errors {0} on average; under any mechanism at least {1}"
_ERRORS = {
    "number": "mean error {0}; no mechanism has less than {1}",
    "category": "another value with probability {0}; under any mechanism at least {1}",
    "distance": "at a distance of {0} on average, for the worst value; under any mechanism at least {1}",
    "set": "{0} elements wrong on average; under any mechanism at least {1}",
    "total": f"the sum {_CURVE}",
    "mean": f"the mean {_CURVE}",
    "max": f"the largest {_CURVE}",
}

RESTS_ON = (
    "Nothing in the spec was chosen by looking at these records.",
    "The release runs in one pair of folders and both are kept, so that each record is sanitised once.",
    "The number of records, their names and their files do not depend on what the records hold.",
    "Epsilons and deltas of other releases about the same people add to these.",
    "Not covered: whether a run fails, how long it takes, and everything on the private side.",
)


def statement(record: Sanitisation) -> str:
    """Return the claim in words."""
    return (
        f"({shown(record.epsilon)}, {shown(record.delta)})-differential privacy of each record, for everything that is "
        "ever computed from the sanitised records: for all values of the record, and for all knowledge about others."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The facts that a reader needs to compute estimates.

    Attributes:
        separator: Separator of the elements of sets.
        format: Format of the files.
        attributes: Possible values and exact mechanism of each attribute.
    """

    separator: str
    format: str
    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if self.format not in OUTPUT_FORMATS:
            raise ValueError(f"format: not one of {', '.join(OUTPUT_FORMATS)}")


def plan_json(spec: SanitiseSpec) -> str:
    """Return the text of the plan that is published."""
    plan = _Plan(separator=spec.separator, format=spec.output.format, attributes=spec.record.attributes)
    return indented(CODEC.dump(plan, version=VERSION)).decode()


def read_plan(text: str, where: str) -> tuple[Sanitisation, str, str]:
    """Return the record, the separator and the format of a published plan; all claims in it are proved again.

    Raises:
        RefusedError: The text is not a plan.
    """
    try:
        plan: _Plan = CODEC.load(_Plan, parsed(text), version=VERSION)
        return Sanitisation(attributes=plan.attributes), plan.separator, plan.format
    except (ArithmeticError, ValueError):
        raise RefusedError(f"{where}: not a plan of sanitised records that this version understands") from None


def plan_document(spec: SanitiseSpec) -> dict[str, Any]:
    """Return the document of `sanitise --plan --json`."""
    return {
        "release": spec.release,
        "loss": {"epsilon": spec.record.epsilon, "delta": spec.record.delta},
        "statement": statement(spec.record),
        "conditions": [*RESTS_ON, *rests_on(spec.source)],
        "columns": [
            {
                "name": one.name,
                "kind": one.kind,
                "epsilon": one.epsilon,
                "delta": one.delta,
                "mechanism": one.mechanism,
                "missing": one.missing_text,
                "error": one.error,
                "lower_bound": one.lower_bound,
            }
            for one in spec.record.attributes
        ],
    }


def plan_text(spec: SanitiseSpec) -> str:
    """Return the text of `sanitise --plan`."""
    record = spec.record
    lines = [f"{spec.release}: epsilon {shown(record.epsilon)}, delta {shown(record.delta)} for each record"]
    for one in record.attributes:
        lines.append(f"  {one.name}: {one.kind}, epsilon {shown(one.epsilon)}, delta {shown(one.delta)}")
        lines.append(f"    {one.mechanism}; missing or impossible values count as {one.missing_text}")
        lines.append(f"    {error_text(one)}")
    if record.delta > 1e-6:
        lines.append(
            f"  In a share of {shown(record.delta, 2)} of all records a value may be revealed: keep delta far below "
            "one divided by the number of records."
        )
    return "\n".join([*lines, *wrap(" ".join((statement(record), *RESTS_ON, *rests_on(spec.source))), 120)])


def error_text(one: Attribute) -> str:
    """State the error of an attribute of a single record."""
    return _ERRORS[one.errors].format(f"{one.error:.4g}", f"{one.lower_bound:.4g}")
