"""The promise of a survey to each person in words, with the numbers of its design, for the person responsible."""

from collections.abc import Iterable
from typing import Any

from pipelines.local.promise import sent, share_text
from pipelines.local.survey import Survey
from pipelines.pages import definitions, words
from pipelines.spec.durations import length_text
from privacy.counted import counted
from privacy.local.design import SHARES
from privacy.upward import shown

WHO = (
    "Each person, by their own device. It randomises the answers before anything leaves it, so only the device knows "
    "the answers: not the collector of the reports, no eavesdropper, and not the author of this page."
)

WHAT = (
    "The protection covers everything that a person ever answers, in all windows together, and whether they answer at "
    "all: when they come, how often their answers change, and when they leave."
)

NOT_PROTECTED = (
    "That a person has one of the devices, and when it reports: that does not depend on answers.",
    "General facts: if most people give the same answer, that reveals something about each, whether they take "
    "part or not.",
    "Several devices of one person, and other surveys of the same people: their epsilons and deltas add up with these.",
    "Groups: facts that several people share, such as a family, are protected with the sum of their epsilons.",
    "The device itself: anyone who holds it, or its stored data, knows the answer.",
    "That the survey exists, its questions and its design.",
)

CONCLUDED = "which answer a person gave, why numbers differ, or what the exact numbers are."

SIGNED = {
    True: "Each counted report has a valid signature of an enrolled device.",
    False: (
        "Signatures of the reports were not verified. Unless it was checked in another way that they come from the "
        "devices, somebody with access to the collected files can have changed the numbers."
    ),
    None: (
        "The file of numbers does not say whether signatures of the reports were verified. Without this check, anyone "
        "who can write the collected files can have changed the numbers."
    ),
}
"""What is known of signatures, by whether they were verified; None: unknown."""


def protected(survey: Survey) -> str:
    """Return who is protected, and by what."""
    return (
        f"Each of the {survey.people:,} people is protected by their own device: it randomises every report before "
        "anything leaves it, so none shows with certainty what the person answered."
    )


def strength(survey: Survey) -> str:
    """Return how strong the protection is, with its consequence for a reader."""
    design = survey.design
    budget = f"epsilon = {shown(design.epsilon)}" + (f", delta = {shown(design.delta)}" if design.delta else "")
    return f"Differential privacy with {budget}, for everything that a device ever sends. {how_well(survey)[-1]}"


def limits(survey: Survey, *, complete: bool) -> list[str]:
    """Return what readers may not conclude, a sentence each.

    Args:
        survey: The survey.
        complete: Whether no report is missing.
    """
    return [
        "Who gave an answer, or what any one person answered.",
        "Why numbers differ. A difference that the noise does not explain can have any cause.",
        "That a number is exact. The number without noise can be anywhere in its 95 % interval, and of 100 such "
        "numbers at most about 5 are outside. Noise can make numbers negative, or larger than the number of people.",
        "That the answers are true: a device randomises what its person answers.",
        "Anything about people without one of these devices.",
        *([] if complete else ["That missing reports would be like those that arrived: estimates take them to be."]),
        *([] if _once(survey) else ["How people changed beyond the contribution bound: those changes do not count."]),
    ]


def not_protected(survey: Survey) -> tuple[str, ...]:
    """Return what the claim does not cover, a sentence each."""
    number = "each carries the device's number"
    if _once(survey):
        return (*NOT_PROTECTED, f"Which device has sent a report: {number}.")
    return (
        *NOT_PROTECTED,
        f"Which reports are of one device: {number}, so that all reports of a person can be linked.",
    )


def coverage(survey: Survey, *, complete: bool) -> str:
    """Return what the intervals cover, and what they do not.

    Args:
        survey: The survey.
        complete: As for `limits`.
    """
    covered = "the randomness of the reports"
    if _drawn(survey):
        covered += ", and the chance that decides which devices report when"
    left = [
        *([] if _once(survey) else ["changes beyond the contribution bound"]),
        *([] if complete else ["how people whose reports are missing differ from the others"]),
        "answers that are not true",
    ]
    return f"The 95 % intervals cover {covered}. They do not cover {', or '.join(left)}."


def _once(survey: Survey) -> bool:
    return survey.design.reported == "once"


def _drawn(survey: Survey) -> bool:
    """Return whether chance decides when a device reports."""
    return _once(survey) or len(survey.design.layers) > 1


def expected(survey: Survey) -> int | None:
    """Return how many reports all devices send together; None if chance decides it."""
    if _once(survey):
        return survey.people
    return None if _drawn(survey) else survey.people * survey.design.nodes(0)


def scaled(survey: Survey, *, complete: bool) -> str:
    """Return how the numbers follow from the reports, and what chance decides, in words; `complete` as for `limits`."""
    everybody = f"all {survey.people:,} people"
    missing = "" if complete else " Missing reports are taken to be like those that arrived."
    if _once(survey):
        return (
            f"The reports of a window are those of a random sample, about 1 device in {survey.design.windows:,}. Each "
            f"number is scaled up from its sample to {everybody}, and its interval covers the chance of the sample, "
            f"too.{missing}"
        )
    if _drawn(survey):
        return (
            "Some devices report on single windows, others on several windows together: each draws by chance which. "
            f"Each number combines their reports and is scaled up to {everybody}, and its interval covers that "
            f"chance, too.{missing}"
        )
    return f"All devices report on every window, so nothing is a sample. Numbers are for {everybody}.{missing}"


def measured(survey: Survey, *, complete: bool) -> list[str]:
    """Return sentences that describe the numbers; `complete` as for `limits`."""
    rest = " The latest numbers state the rest." if "level" in survey.publish else ""
    return [
        f"How many of {counted(survey.people, 'person')} give each answer. Windows of {length_text(survey.every)}.",
        "A person without an answer, such as before the first one or after leaving, counts for none of them. So the "
        f"numbers need not add up to {survey.people:,}.{rest}",
        f"{reported(survey)} {scaled(survey, complete=complete)}",
    ]


def meaning(kind: str) -> str:
    """Return what the numbers of a kind are."""
    if kind == "level":
        return "people who give the answer at the end of a window"
    return "by how many people the number of those who give the answer changes within a window"


def reported(survey: Survey) -> str:
    """Return how many reports a device sends, and how many there are in a window, in words."""
    design, window = survey.design, f"each window of {length_text(survey.every)}"
    if _once(survey):
        every = survey.people / design.windows
        return (
            f"Each device reports once, in one window that it draws by chance: about {every:,.0f} reports in {window}."
        )
    layers = [(design.nodes(number), layer.share / SHARES) for number, layer in enumerate(design.layers)]
    least, most = (pick(nodes for nodes, _ in layers) for pick in (min, max))
    every = survey.people * sum(nodes * share for nodes, share in layers) / design.windows
    number = counted(most, "report") if least == most else f"{least:,} to {counted(most, 'report')}"
    return (
        f"Each device sends {number}, at times that do not depend on its answers: on average about {every:,.0f} "
        f"reports in {window}."
    )


def how_well(survey: Survey) -> list[str]:
    """Return sentences that explain epsilon and delta."""
    epsilon, delta = survey.design.epsilon, survey.design.delta
    said = [
        f"Epsilon is {shown(epsilon)} and delta is {shown(delta)}, for everything that a device ever sends, in "
        f"{counted(survey.design.windows, 'window')} together.",
        "The device would have sent the same reports with nearly the same probability if its person had answered "
        f"anything else, or nothing: {words.likelihood(epsilon, delta)}",
    ]
    if not delta:
        said.append(
            "A reader who first thinks two courses of a person's answers equally likely can be at most "
            f"{words.sure(epsilon)} sure after reading everything that the device has ever sent."
        )
    return said


def always(survey: Survey) -> str:
    """Return when devices report, in words."""
    return (
        f"The devices ({survey.people:,}) were fixed beforehand, and each is to report even if its person has no "
        "answer, before they have come and after they have left: a report that is sent only when something happens "
        f"would reveal that it happened. {reported(survey)}"
    )


def devices(survey: Survey) -> list[str]:
    """Return for each layer what its devices send, in words."""
    said = []
    for layer, one in zip(survey.design.layers, sent(survey.design, survey.every), strict=True):
        people, most = share_text(one["people"]), one["can_differ"]
        when = "once" if _once(survey) else f"every {length_text(layer.span * survey.every)}"
        differ = f" Between two people, answers can make a difference in at most {most:,} of them."
        reports = f"{people[0].upper()}{people[1:]}: {counted(one['of_a_person'], 'report')}, {when}."
        said.append(f"{reports} {_randomised(survey, one)}{differ if one['of_a_person'] > 1 else ''}")
    return said


def _randomised(survey: Survey, one: dict[str, Any]) -> str:
    """Return how the reports of one layer are randomised, in words; `one` is from `promise.sent`."""
    if one["randomiser"] == "symbols":
        what = "an answer, or none" if _once(survey) else "a change of the answer, or no change"
        return (
            f"A report is one of {one['symbols']:,} values ({what}): the true one with probability "
            f"{one['truth']:.3g}, each other one with {one['other']:.3g}."
        )
    truth = f"{(1 + one['gain']) / 2:.3g}"
    if _once(survey):
        return f"A report answers a question with yes or no: with the truth with probability {truth}."
    together = f" The noise of {one['signs']:,} such reports is drawn together." if one["signs"] > 1 else ""
    return (
        "A report states whether the answer to a question has become yes, or no: with the truth with probability "
        f"{truth}, and either with probability 0.5 if the answer is as before.{together}"
    )


def bound(survey: Survey) -> str:
    """Return the contribution bound of a person, which the device enforces, in words."""
    limit = survey.design.bound
    if _once(survey):
        return "Any number of changes: a device reports one answer, that of its window, and changes do not matter."
    if limit.at_most is not None:
        what = f"At most {counted(limit.at_most, 'change')} of a person can count, and the first answer is one."
    elif limit.within:
        after = length_text(limit.within * survey.every)
        what = f"Changes of a person count in the window of the first one, and for {after} after it."
    else:
        what = "Changes of a person count in the window of the first one alone."
    return f"{what} Then the device reports as if nothing changed, and nobody has to know how often people change."


def glossary(survey: Survey, parts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the terms that the page of a survey uses, each with its meaning; `parts` is its other HTML."""
    terms = [
        (
            "window",
            f"What a number is about: {length_text(survey.every)}. It does not contain its end.",
        ),
        *((kind, f"{meaning(kind).capitalize()}.") for kind in survey.publish),
        ("curator", "Who asks, and publishes the numbers."),
        ("collector", "Who gathers the reports and computes the numbers from them."),
        ("spec", "The file in which the curator states the questions and how answers are protected."),
        ("report", "What a device sends: an answer, or a part of one, that the device has randomised."),
        ("design", "How devices randomise. It is fixed before the first report, and public."),
        ("noise", "The randomness of the reports. It hides what any one person answered."),
        definitions.INTERVAL,
        ("contribution bound", f"The most that one person can count for. {bound(survey)}"),
        ("differential privacy", "A proved limit to what all reports of a device reveal about its person's answers."),
        ("privacy unit", "What the protection is for, here one person with all answers that their device ever gets."),
        (
            "epsilon",
            "How much the answers of one person can change the probability of anything that their device sends: by a "
            "factor of at most e^epsilon. Smaller protects more.",
        ),
        ("delta", "A small probability with which the bound by epsilon may fail; 0: it never does."),
        ("mostly noise", definitions.mostly_noise()),
        definitions.ROUNDING,
    ]
    return definitions.used(terms, parts)
