"""The promise of a survey to each person in words, with the numbers of its design, for the person responsible."""

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


PROTECTED = (
    "Each person is protected by their own device: it randomises every answer before it sends it, so nobody else knows "
    "the answer."
)

COVERAGE = (
    "The 95 % intervals cover the randomness of the reports alone. They do not cover changes beyond the contribution "
    "bound, or how people who do not report differ from the others."
)


def measured(survey: Survey) -> list[str]:
    """Return sentences that describe the numbers."""
    return [
        f"How many of {counted(survey.people, 'person')} give each answer. Windows of {length_text(survey.every)}.",
        "A person without an answer, such as before the first one or after leaving, counts for none of them. So the "
        f"numbers need not add up to {survey.people:,}.",
        reported(survey),
    ]


def meaning(kind: str) -> str:
    """Return what the numbers of a kind are."""
    if kind == "level":
        return "people who give the answer at the end of a window"
    return "by how many people the number of those who give the answer changes within a window"


def reported(survey: Survey) -> str:
    """Return how many reports a device sends, and how many there are in a window, in words."""
    design, window = survey.design, f"each window of {length_text(survey.every)}"
    if design.reported == "once":
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
    return f"{everybody} {reported(survey)}"


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


def glossary(survey: Survey) -> list[tuple[str, str]]:
    """Return the terms that the page of a survey uses, each with its meaning."""
    design = survey.design
    return [
        ("window", f"The time of one number, here {length_text(survey.every)}. It does not contain its end."),
        *((kind, f"{meaning(kind).capitalize()}.") for kind in survey.publish),
        ("report", "What a device sends: an answer, or a part of one, that the device has randomised."),
        ("design", "How devices randomise. It is fixed before the first report, and public."),
        ("noise", "The randomness of the reports. It hides what any one person answered."),
        definitions.INTERVAL,
        ("contribution bound", bound(survey)),
        ("privacy unit", WHO),
        (
            "epsilon",
            "How much the answers of one person can change the probability of anything that their device sends: by a "
            "factor of at most e^epsilon. Smaller protects more.",
        ),
        *([("delta", "A small probability with which the bound by epsilon may fail.")] if design.delta else []),
        ("mostly noise", definitions.mostly_noise()),
        definitions.ROUNDING,
    ]
