"""`slackwater local plan`: the cost of a survey, the margins of error of its numbers, and the design for devices."""

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from pipelines.common.value import Value
from pipelines.local.promise import CONDITIONS, how, in_the_open, sent, statement
from pipelines.local.spec import LocalSpec, load_local
from pipelines.local.survey import Survey, frozen, write_survey
from privacy.counted import counted
from privacy.local.bound import loss_of_all_layers
from privacy.local.candidates import CandidateDesign, candidates
from privacy.local.design import Design
from privacy.local.signs import MOST_SIGNS
from transforms.common.errors import SpecError


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSurvey(Value):
    """Cost of a survey for each person, and margins of error of its numbers.

    Attributes:
        release: Name of the survey.
        epsilon, delta: Privacy parameters of each person's device, for everything that it reports.
        statement: The claim in words.
        warnings: Doubtful choices of the spec.
        file: Path of the design that was written; None: no file.
        document: All of it, as `to_json` returns it.
    """

    release: str
    epsilon: float
    delta: float
    statement: str
    warnings: tuple[str, ...]
    file: str | None
    document: dict[str, Any] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater local plan --json`."""
        return self.document

    def text(self) -> str:
        """Return the text that `slackwater local plan` prints."""
        return _text(self.document)


def plan(spec: str | Path, *, output: str | Path | None = None) -> PlannedSurvey:
    """Plan a survey: its cost for each person and the margins of error of its numbers. Reads no data.

    Args:
        spec: Path of the spec of a survey.
        output: Write the design for devices and collector to this new file.

    Raises:
        SpecError: The spec is wrong, or another design is in the file.
    """
    one, file = load_local(spec), None if output is None else str(output)
    found = _candidates(one)
    survey = Survey(
        release=one.release,
        names=one.names,
        people=one.people,
        publish=one.publish,
        start=one.start,
        every=one.every,
        design=found[0].design,
        about=one.about,
    )
    document = {**_document(one, found), "file": file}
    if file is not None:
        write_survey(frozen(survey), file)
    return PlannedSurvey(
        release=one.release,
        epsilon=one.epsilon,
        delta=survey.design.delta,
        statement=document["statement"],
        warnings=tuple(document["warnings"]),
        file=file,
        document=document,
    )


def design_of(spec: LocalSpec) -> Design:
    """Return the design that is planned for a survey.

    Raises:
        SpecError: No design fits the spec.
    """
    return _candidates(spec)[0].design


def _candidates(spec: LocalSpec) -> list[CandidateDesign]:
    try:
        found = candidates(
            spec.space,
            spec.bound,
            windows=spec.windows,
            epsilon=spec.epsilon,
            delta=spec.delta,
            publish=spec.publish,
        )
    except ValueError as error:
        raise SpecError(f"local.epsilon: {error}; use a larger epsilon") from None
    found = [each for each in found if spec.method is None or each.method == spec.method]
    if not found:
        raise SpecError(
            f"local.method: signs are for at most {MOST_SIGNS:,} changes of a person; lower the constraint, or use once"
        )
    return found


def _document(spec: LocalSpec, found: list[CandidateDesign]) -> dict[str, Any]:
    best, design = found[0], found[0].design
    return {
        "release": spec.release,
        "loss": {"epsilon": spec.epsilon, "delta": design.delta},
        "statement": statement(design),
        "conditions": list(CONDITIONS),
        "people": spec.people,
        "windows": spec.windows,
        "reports": sent(design, spec.every),
        "paper_can_differ": _paper(spec, best),
        "warnings": _warnings(spec, best),
        "candidates": [
            {
                "method": each.name,
                "chosen": each is best,
                "delta": each.design.delta,
                "numbers": [
                    {"kind": kind, "rmse": float(np.sqrt(spec.people * variances.mean()))}
                    for kind, variances in each.variances.items()
                ],
            }
            for each in _shortened(found)
        ],
    }


def _shortened(found: list[CandidateDesign]) -> list[CandidateDesign]:
    """Return the best candidate of each method, with and without a tree."""
    kinds: dict[tuple[str, bool], CandidateDesign] = {}
    for each in found:
        alike = each.name if each.method == "once" else each.method
        kinds.setdefault((alike, len(each.design.layers) > 1), each)
    return list(kinds.values())


def _paper(spec: LocalSpec, best: CandidateDesign) -> int:
    """Return how many reports of two people can differ if everybody reports on all layers, as in the paper."""
    layers = len(best.design.layers)
    return round(
        loss_of_all_layers(spec.bound, windows=spec.windows, arity=best.arity or 2, layers=layers, epsilon=1.0)
    )


def _warnings(spec: LocalSpec, best: CandidateDesign) -> list[str]:
    found = []
    if text := in_the_open(best.design, spec.people):
        found.append(f"{text}: use a delta far below 1 / people, or no delta")
    worst = max(float(np.sqrt(spec.people * variances.max())) for variances in best.variances.values())
    if worst > spec.people / 4:
        found.append(
            f"the margin of error is up to {worst:,.0f} of {counted(spec.people, 'person')}: there are too few people "
            "for this epsilon"
        )
    return found


def _text(document: dict[str, Any]) -> str:
    lines = [
        f"{document['release']}: {counted(document['people'], 'person')}, {counted(document['windows'], 'window')}",
        *wrap(document["statement"], 120),
        *(f"- {condition}" for condition in document["conditions"]),
        "",
        "root mean square error of the numbers of people, over all windows, once all have closed:",
    ]
    for each in document["candidates"]:
        numbers = ", ".join(f"{number['kind']} {number['rmse']:,.0f}" for number in each["numbers"])
        lines.append(f"  {'*' if each['chosen'] else ' '} {each['method']}: {numbers}")
    lines += ["", "what a person's device sends:"]
    for each in document["reports"]:
        every = "in one window, drawn by chance" if each["every"] is None else f"every {each['every']}"
        sent = counted(each["of_a_person"], "report")
        lines.append(
            f"  {each['people']:.1%} of people: {sent}, {every}, of which {each['can_differ']} "
            f"can differ between two people; {how(each)}"
        )
    differ = document["paper_can_differ"]
    lines.append(
        f"  (In the paper everybody reports on every layer: {differ} reports can differ, of epsilon / {differ} each.)"
    )
    lines += [f"warning: {warning}" for warning in document["warnings"]]
    if document["file"] is not None:
        lines.append(f"the design for devices and collector: {document['file']}")
    return "\n".join(lines)
