"""The twenty points of a disclosure for sanitised records (`pipelines.disclosure.facts`)."""

from collections.abc import Mapping

from pipelines.disclosure.facts import NOT_STATED, curator_text
from pipelines.pages import words as of_pages
from pipelines.sanitised import words
from privacy.counted import listed
from privacy.sanitised.record import Sanitisation
from privacy.upward import shown


def disclosure(record: Sanitisation, about: Mapping[str, str], *, program: str, sampler: int) -> dict[str, str]:
    """Return the texts of all points by their names, from the spec and versions alone.

    Args:
        record: Mechanism of each attribute.
        about: Texts of the spec's section `about` by their keys.
        program: Version of the program; empty if it is unknown.
        sampler: Version of the samplers.
    """
    epsilon, delta = shown(record.epsilon), shown(record.delta)
    names = listed([one.name for one in record.attributes])
    return {
        "curator": curator_text(lambda key: about.get(key, "")),
        "use": about.get("use", NOT_STATED),
        "dates": "Each record is sanitised once, by the first run that finds it, and stays as it is. Runs have no end.",
        "unit": "One record: one value of the column of names, with everything that it holds.",
        "neighbours": "Two sets of records that differ in the content of one record.",
        "parameters": f"epsilon = {epsilon}, delta = {delta} for each record.",
        "scope": "All time: a record is sanitised once, so more runs cost it nothing more.",
        "composition": (
            "Epsilons and deltas of the attributes add up. Records do not, except records of one person. Other "
            "releases about the same people add their epsilons and deltas."
        ),
        "spent": f"Each sanitised record has spent all of it: epsilon = {epsilon}, delta = {delta}.",
        "bounds": "Values that are not listed count as missing. Numbers are clamped to their range and its steps.",
        "unprotected": " ".join(words.NOT_PROTECTED),
        "chosen": (
            f"{about.get('justification') or NOT_STATED} The claim requires that nothing in the spec was chosen by "
            "looking at these records."
        ),
        "mechanisms": "; ".join(
            f"{one.name}: {one.mechanism}, epsilon = {shown(one.epsilon)}" for one in record.attributes
        )
        + ".",
        "versions": (
            f"Slackwater {program}. Its samplers, version {sampler}, are exact and have no seed."
            if program
            else "Not stated: the version of Slackwater that sanitised the records did not record itself."
        ),
        "side_channels": (
            "Noise is sampled in exact arithmetic, not in floating point. That a record exists is public. Whether a "
            "run fails and how long it takes are not covered."
        ),
        "trust": (
            "Central model: the curator, and each account that can read the records or the private folder, sees them "
            "exactly. Readers see sanitised records alone."
        ),
        "errors": f"The plan states the error of a single record of {names}. Estimates have 95 % confidence intervals.",
        "biases": "Estimates are unbiased, so shares may be below 0 or above 1. They do not state what was clamped.",
        "odds": (
            "Linking is not prevented: records keep their order. Inference is bounded: the same sanitised record would "
            "be more or less likely if the record had held anything else: "
            + of_pages.likelihood(record.epsilon, record.delta)
        ),
        "evidence": (
            "The mechanisms have written proofs and statistical tests. Nobody outside the project has reviewed them. "
            "The command slackwater audit does not cover sanitised records."
        ),
    }
