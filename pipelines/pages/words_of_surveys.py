"""What a survey promises each person, for whoever answers for it: in words, with the numbers of its design."""

from pipelines.local.survey import Survey
from pipelines.pages import words
from pipelines.spec.durations import length_text
from privacy.counted import counted
from privacy.upward import shown

WHO = (
    "Each person, by their own device. It randomises what they answer before anything leaves it, so that nobody but "
    "the device knows the answers: not whoever collects the reports, nor whoever listens or has made this page."
)

WHAT = (
    "All that a person ever answers, in all windows together, and whether they answer at all: when they come, how "
    "often their answers change, and when they leave."
)

NOT_PROTECTED = (
    "That somebody has one of the devices, and when it reports: all of them do, on one schedule.",
    "What is true of people in general: that most give the same answer tells something about each, whether they take "
    "part or not.",
    "Several devices of one person, and other surveys of the same people: their epsilons and deltas add up with these.",
    "Groups: what several people have in common, a family say, is protected with epsilon of each of them added up.",
    "The device itself: whoever holds it, or what it keeps, knows the answer.",
    "Which reports are of one device: each carries the device's number, so that all reports of a person can be linked.",
    "That the survey exists, its questions and its design.",
)


def measured(kind: str, survey: Survey) -> str:
    """What numbers of a kind say, in a sentence."""
    window = f"each window of {length_text(survey.every)}"
    if kind == "level":
        return f"How many of {counted(survey.people, 'person')} give each answer at the end of {window}."
    return f"By how many people the number of those who give each answer changes within {window}."


def how_well(survey: Survey) -> list[str]:
    """Epsilon and delta, explained."""
    epsilon, delta = survey.design.epsilon, survey.design.delta
    said = [
        f"Epsilon is {shown(epsilon)} and delta is {shown(delta)}, for all that a device ever sends, in "
        f"{counted(survey.design.windows, 'window')} together.",
        "What a device sends it would have sent with nearly the same probability had its person answered anything "
        f"else, or nothing: {words.likelihood(epsilon, delta)}",
    ]
    if not delta:
        said.append(
            "So whoever thinks one of two courses of a person's answers as likely as the other can be "
            f"{words.sure(epsilon)} sure at most after reading all that the device has ever sent."
        )
    return said


def always(survey: Survey) -> str:
    """When devices report."""
    everybody = (
        f"Everybody reports, always. The devices ({survey.people:,}) were fixed beforehand, and each reports whether "
        "its person has anything to say or not, also before they are there and after they have left: a report that is "
        "only sent when something happens says that it happened."
    )
    if survey.design.reported == "once":
        return f"{everybody} Each does so once, in a window that it draws by chance."
    return everybody


def bound(survey: Survey) -> str:
    """What counts of a person's answers, which the device enforces."""
    limit = survey.design.bound
    if survey.design.reported == "once":
        return "Any number of changes: a device tells one answer, that of its window, and changes do not matter."
    if limit.at_most is not None:
        what = f"At most {counted(limit.at_most, 'change')} of a person can count, to come being one."
    elif limit.within:
        after = length_text(limit.within * survey.every)
        what = f"Changes of a person count in the window of the first one, and for {after} after it."
    else:
        what = "Changes of a person count in the window of the first one alone."
    return f"{what} Then the device goes on as if nothing changed, and nobody has to know how often people change."
