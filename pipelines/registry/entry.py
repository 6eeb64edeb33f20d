"""An entry of the public registry of differential privacy deployments, from a spec and its plan.

The members are those of the registry's schema (github.com/opendp/deployments-registry-data,
schemas/deployments-schema.yaml, commit 057e5d81). Its number of privacy units is left out: that number is a fact about
the data.
"""

from datetime import UTC, datetime
from typing import Any

from pipelines.disclosure.facts import Subject, disclosure
from pipelines.pages.subject import covered
from pipelines.spec.times import MICROSECOND
from privacy.counted import listed
from privacy.planning.plan import Plan

TIER = 3
"""Completeness of the entry: the highest of the registry's three."""


def entry_of(subject: Subject, first: datetime | None) -> dict[str, Any]:
    """Return the entry as values of YAML.

    Args:
        subject: The release; its spec has all texts that `missing` asks for.
        first: Time of the first publication; None: the first window's planned end.
    """
    said, about = disclosure(subject), subject.about
    spec, plan = subject.spec, subject.plan
    planned = datetime.fromtimestamp(0, UTC) + (spec.schedule.start + spec.schedule.every) * MICROSECOND
    sector = {"data_product_sector": about("sector")} if about("sector") else {}
    return {
        "url_slug": spec.release,
        "deployment": {
            "basic": {
                "name": spec.release,
                "data_curators": [
                    {"data_curator_name": about("curator"), "data_curator_type": about("curator_type")},
                ],
                "description": _description(subject),
                "intended_use": about("use"),
                "data_product_type": "Summary statistics",
                "data_product_region": about("region"),
                **sector,
                "publication_date": (first or planned).date().isoformat(),
            },
            "dp_variant": {
                "variant_name": _variant(plan),
                "data_domain": f"Changelogs of a changing table. {said['unit']}",
                "unprotected_quantities": said["unprotected"],
            },
            "privacy_loss": {
                "privacy_unit": covered(spec),
                "privacy_unit_details": f"{said['unit']} Neighbours: {said['neighbours']}",
                "privacy_parameters": _parameters(plan),
                "privacy_parameters_details": f"{said['parameters']} {said['odds']}",
            },
            "deployment_model": {
                "model_name": "Central",
                "trust_assumptions": said["trust"],
                "release_type": "One release" if spec.schedule.windows == 1 else "Many releases",
                "release_type_details": f"{said['dates']} {said['scope']}",
                "data_source_type": "Dynamic",
                "data_source_type_details": "Rows are inserted, updated and deleted while the release runs.",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": f"{said['bounds']} {said['chosen']}",
                "mechanisms": f"{said['mechanisms']} {said['versions']} {said['side_channels']}",
                "composition": said["composition"],
                "post_processing": said["biases"],
                "justification": about("justification"),
                "utility": said["errors"],
                "additional_information": f"{said['curator']} {said['evidence']} {plan.statement}",
            },
            "administrative": {"status": "Draft", "registry_authors": [about("curator")], "tier": TIER},
        },
    }


EXAMPLES = {
    "curator": "curator: {name: City Hospital, type: Government}",
    "use": "use: Plan the number of beds.",
    "region": "region: Ireland",
    "justification": "justification: Epsilon follows the guideline of 2025.",
}
"""Keys of `about` that the registry requires, or that its highest tier asks for; with examples."""


def missing(subject: Subject) -> list[str]:
    """Return the keys of the spec without which the entry would be incomplete, each with an example."""
    wanted = {key: f"missing; add {example}" for key, example in EXAMPLES.items() if not subject.about(key)}
    if "curator" not in wanted and not subject.about("curator_type"):
        wanted["curator"] = f"has no type; write {EXAMPLES['curator']}"
    return [f"about.{key}: {text}" for key, text in wanted.items()]


def _description(subject: Subject) -> str:
    spec = subject.spec
    names = [f"{query.name} ({query.measure.kind.replace('_', ' ')})" for query in spec.queries]
    return f"Statistics of a changing database, in windows of {spec.schedule.length}: {listed(names)}."


def _variant(plan: Plan) -> str:
    """Return the variant's name; places that are near each other are neighbours of a relation that has no name."""
    if plan.promise.near:
        return "Custom"
    return "Approximate DP" if plan.budget.delta else "Pure DP"


def _parameters(plan: Plan) -> dict[str, float]:
    found = {"epsilon": plan.budget.epsilon}
    return {**found, "delta": plan.budget.delta} if plan.budget.delta else found
