"""The promise of a survey to each person in words, with the numbers of its design, for the person responsible."""

from pipelines.local.survey import Survey
from pipelines.pages import words
from pipelines.spec.durations import length_text
from privacy.counted import counted
from privacy.upward import shown

WHO = (
    "Each person, by their own device. It randomises the answers before anything leaves it, so only the device knows "
    "the answers: not the collector of the reports, no eavesdropper, and not the author of this page."
)

WHAT = (
    "Everything that a person ever answers, in all windows together, and whether they answer at all: when they come, "
    "how often their answers change, and when they leave."
)

NOT_PROTECTED = (
    "That a person has one of the devices, and when it reports: all of them report, on one schedule.",
    "General facts: if most people give the same answer, that reveals something about each, whether they take "
    "part or not.",
    "Several devices of one person, and other surveys of the same people: their epsilons and deltas add up with these.",
    "Groups: facts that several people share, such as a family, are protected with the sum of their epsilons.",
    "The device itself: anyone who holds it, or its stored data, knows the answer.",
    "Which reports are of one device: each carries the device's number, so that all reports of a person can be linked.",
    "That the survey exists, its questions and its design.",
)


def measured(kind: str, survey: Survey) -> str:
    """Return a sentence that describes numbers of a kind."""
    window = f"each window of {length_text(survey.every)}"
    if kind == "level":
        return f"How many of {counted(survey.people, 'person')} give each answer at the end of {window}."
    return f"By how many people the number of those who give each answer changes within {window}."


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
            "So a reader who first thinks two courses of a person's answers equally likely can be at most "
            f"{words.sure(epsilon)} sure after reading everything that the device has ever sent."
        )
    return said


def always(survey: Survey) -> str:
    """Return when devices report, in words."""
    everybody = (
        f"Every device always reports. The devices ({survey.people:,}) were fixed beforehand, and each reports even if "
        "its person has no answer, before they have come and after they have left: a report that is sent only when "
        "something happens would reveal that it happened."
    )
    if survey.design.reported == "once":
        return f"{everybody} Each reports once, in a random window."
    return everybody


def bound(survey: Survey) -> str:
    """Return the contribution bound of a person, which the device enforces, in words."""
    limit = survey.design.bound
    if survey.design.reported == "once":
        return "Any number of changes: a device reports one answer, that of its window, and changes do not matter."
    if limit.at_most is not None:
        what = f"At most {counted(limit.at_most, 'change')} of a person can count, and the first answer is one."
    elif limit.within:
        after = length_text(limit.within * survey.every)
        what = f"Changes of a person count in the window of the first one, and for {after} after it."
    else:
        what = "Changes of a person count in the window of the first one alone."
    return f"{what} Then the device reports as if nothing changed, and nobody has to know how often people change."
