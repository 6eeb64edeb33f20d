"""What sanitising costs and how far off each attribute is: before any data is read, and as it is published."""

import json
from functools import cache
from textwrap import wrap
from typing import Any

from pydantic import TypeAdapter

from pipelines.sanitised.spec import SanitiseSpec
from privacy.exact import parsed
from privacy.sanitised.attributes import Attribute, Category, Curve, Number, Subset
from privacy.sanitised.record import Sanitisation
from privacy.upward import shown
from transforms.common.errors import RefusedError
from transforms.common.sinks import OUTPUT_FORMATS

_KINDS = {kind.__name__: kind for kind in (Number, Category, Subset, Curve)}
_UNITS = {
    "Number": "off by {0} on average; no mechanism by less than {1}",
    "Category": "another value with probability {0}; under any mechanism at least {1}",
    "Subset": "{0} elements wrong on average; under any mechanism at least {1}",
    "Curve": "{2} of the points' errors {0} on average; under any mechanism at least {1}",
}

RESTS_ON = (
    "Nothing in the spec was chosen by looking at these records.",
    "The release runs in one pair of folders and both are kept, so that each record is sanitised once.",
    "How many records there are, how they are named and in which files they stand is taken as given: the same whatever "
    "they hold.",
    "Other releases about the same people add their epsilons and deltas to these.",
    "Whether a run fails, how long it takes and what is on the private side are not covered.",
)


def statement(record: Sanitisation) -> str:
    """The claim in words."""
    return (
        f"({shown(record.epsilon)}, {shown(record.delta)})-differential privacy of each record, for everything that is "
        "ever made of the sanitised ones: whatever a record holds, and whatever is known of all others."
    )


def plan_json(spec: SanitiseSpec) -> str:
    """All that a reader needs to make estimates: what each attribute can be, and its mechanism, exactly."""
    attributes = [
        {"kind": type(one).__name__, **_adapter(type(one).__name__).dump_python(one)} for one in spec.record.attributes
    ]
    document = {"version": 1, "separator": spec.separator, "format": spec.output.format, "attributes": attributes}
    return json.dumps(document, indent=1)


def read_plan(text: str, where: str) -> tuple[Sanitisation, str, Any]:
    """The record, the separator and the format of a published plan; all claims in it are proved anew.

    Raises:
        RefusedError: it is none.
    """
    try:
        document = parsed(text)
        separator, format_ = document["separator"], document["format"]
        if document["version"] != 1 or not isinstance(separator, str) or format_ not in OUTPUT_FORMATS:
            raise ValueError
        attributes = [_adapter(one.pop("kind")).validate_python(one) for one in document["attributes"]]
        return Sanitisation(attributes=tuple(attributes)), separator, format_
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise RefusedError(f"{where}: not a plan of sanitised records that this version understands") from None


def plan_document(spec: SanitiseSpec) -> dict[str, Any]:
    """As `--json` prints it."""
    return {
        "release": spec.release,
        "loss": {"epsilon": spec.record.epsilon, "delta": spec.record.delta},
        "statement": statement(spec.record),
        "conditions": list(RESTS_ON),
        "columns": [
            {
                "name": one.name,
                "kind": kind_text(one),
                "epsilon": one.epsilon,
                "delta": one.delta,
                "mechanism": one.mechanism,
                "missing": missing_text(one),
                "error": one.error,
                "lower_bound": one.lower_bound,
            }
            for one in spec.record.attributes
        ],
    }


def plan_text(spec: SanitiseSpec) -> str:
    """The same for people."""
    record = spec.record
    lines = [f"{spec.release}: epsilon {shown(record.epsilon)}, delta {shown(record.delta)} for each record"]
    for one in record.attributes:
        lines.append(f"  {one.name}: {kind_text(one)}, epsilon {shown(one.epsilon)}, delta {shown(one.delta)}")
        lines.append(f"    {one.mechanism}; what is missing or cannot be counts as {missing_text(one)}")
        lines.append(f"    {error_text(one)}")
    if record.delta > 1e-6:
        lines.append(
            f"  In {shown(record.delta, 2)} of all records a value may be plainly told: keep delta far below one "
            "in the number of records."
        )
    return "\n".join([*lines, *wrap(" ".join((statement(record), *RESTS_ON)), 120)])


def error_text(one: Attribute) -> str:
    """How far off an attribute of a single record is."""
    template = _UNITS[type(one).__name__]
    if isinstance(one, Category) and one.distances is not None:
        template = "at a distance of {0} on average, for the value where it is worst; under any mechanism at least {1}"
    names = {"total": "the sum", "mean": "the mean", "max": "the largest"}
    return template.format(
        f"{one.error:.4g}", f"{one.lower_bound:.4g}", names[one.metric] if isinstance(one, Curve) else ""
    )


def kind_text(one: Attribute) -> str:
    """As the spec calls it."""
    return {"Number": "number", "Category": "category", "Subset": "set", "Curve": "curve"}[type(one).__name__]


def missing_text(one: Attribute) -> str:
    """What counts where there is nothing, or nothing that can be."""
    if isinstance(one, Number | Curve):
        return f"{one.grid.low + one.grid.step * one.missing:g}"
    return one.values[one.missing] if isinstance(one, Category) else "an empty set"


@cache
def _adapter(kind: str) -> TypeAdapter[Attribute]:
    return TypeAdapter(_KINDS[kind])
