"""What is promised of sanitised records, for whoever answers for it: in words, with the numbers of their plan."""

from pipelines.pages import html, words
from pipelines.sanitised.plan import RESTS_ON, statement
from privacy.counted import counted
from privacy.sanitised.attributes import Attribute, Category, Curve, Number, Subset
from privacy.sanitised.record import Sanitisation
from privacy.upward import shown

WHAT = (
    "One record: whatever it holds, in all columns together. What came out of it tells no more about that than epsilon "
    "and delta allow, whatever is known of all other records, and whatever is asked of the sanitised ones, now or "
    "later: every query is covered, and so is giving the records away."
)

NOT_PROTECTED = (
    "That somebody is among the records at all, and how many records there are.",
    "Which record is whose: they keep the order of the rows, and the run in which they came.",
    "One person with several records: who has three of them has three times epsilon.",
    "What is true of people in general: that most say the same tells something about each, whether among the records "
    "or not.",
    "Groups: what several records have in common, those of a family or a company, is protected with epsilon of each "
    "of them added up.",
    "What is known from elsewhere, and what other releases about the same people say: their epsilons and deltas add "
    "up with these.",
    "That the release exists, what its columns can be, when and how often it runs, and whether it fails.",
    "The private folder and the records as they were, which hold everything.",
)


def asked(attribute: Attribute) -> str:
    """What is estimated of an attribute, in a sentence."""
    match attribute:
        case Category():
            return f"The share of all records of each of {counted(len(attribute.values), 'value')}."
        case Subset():
            return f"The share of all records that have each of {counted(len(attribute.values), 'element')}."
        case Number(grid=grid):
            end = grid.low + grid.steps * grid.step
            return f"The mean of all records, each number clamped to {grid.low:g} to {end:g}."
        case Curve(grid=grid):
            end = grid.low + grid.steps * grid.step
            return (
                f"The mean of all records at each of {counted(len(attribute.points), 'point')} of a curve, each number "
                f"clamped to {grid.low:g} to {end:g}."
            )


def how_well(record: Sanitisation, records: int) -> list[str]:
    """Epsilon and delta, explained.

    Args:
        records: how many there are.
    """
    epsilon, delta = record.epsilon, record.delta
    said = [
        f"Epsilon is {shown(epsilon)} and delta is {shown(delta)} for each record, all attributes together: those of "
        "the attributes add up. However many records there are, and whatever is made of them, it is not more.",
        "What came out of a record would have come out with nearly the same probability had it held anything else: "
        + words.likelihood(epsilon, delta),
    ]
    if not delta:
        said.append(
            "So whoever thinks one of two things as likely as the other to have been in a record, and knows everything "
            f"about all other records, can be {words.sure(epsilon)} sure at most after reading all of them."
        )
    elif delta * records > 0.01:
        said.append(
            f"Of {counted(records, 'record')} up to {delta * records:.3g} may have a value that is plainly told, on "
            "average: a delta should be far below one in the number of records."
        )
    return said


def claim(record: Sanitisation) -> list[str]:
    """As the command says it, as parts of a page."""
    return [html.paragraph(statement(record)), html.bullets(RESTS_ON)]
