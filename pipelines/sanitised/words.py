"""The promise for sanitised records in words, with the numbers of their plan, for the person responsible."""

from pipelines.pages import html, words
from pipelines.sanitised.published_plan import RESTS_ON, statement
from privacy.counted import counted
from privacy.sanitised.record import Sanitisation
from privacy.upward import shown

WHAT = (
    "One record: everything that it holds, in all columns together. Its sanitised form reveals no more about it than "
    "epsilon and delta allow, for all knowledge about other records, and for every question to the sanitised records, "
    "now or later: every query is covered, and so is publishing the records."
)

NOT_PROTECTED = (
    "That a person is among the records at all, and how many records there are.",
    "Whose record it is: records keep the order of the rows, and the run in which they came.",
    "One person with several records: a person with three records has three times epsilon.",
    "General facts: if most people say the same, that reveals something about each, among the records or not.",
    "Groups: facts that several records share, such as those of a family or a company, are protected with the sum of "
    "their epsilons.",
    "Knowledge from other sources. Epsilon and delta of other releases about the same people add to these.",
    "That the release exists, what its columns can be, when and how often it runs, and whether it fails.",
    "The private folder and the records as they were, which hold everything.",
)


def how_well(record: Sanitisation, records: int) -> list[str]:
    """Return sentences that explain epsilon and delta."""
    epsilon, delta = record.epsilon, record.delta
    said = [
        f"Epsilon is {shown(epsilon)} and delta is {shown(delta)} for each record, all attributes together: those of "
        "the attributes add up. It is not more for any number of records, and for anything computed from them.",
        "The same sanitised record would have come out with nearly the same probability if it had held anything else: "
        + words.likelihood(epsilon, delta),
    ]
    if not delta:
        said.append(
            "So a reader who first thinks two contents of a record equally likely, and knows everything about all "
            f"other records, can be at most {words.sure(epsilon)} sure after reading all of them."
        )
    elif delta * records > 0.01:
        said.append(
            f"Of {counted(records, 'record')} up to {delta * records:.3g} may have a revealed value, on average: delta "
            "should be far below one divided by the number of records."
        )
    return said


def claim(record: Sanitisation) -> list[str]:
    """Return the claim as the command prints it, as parts of a page."""
    return [html.paragraph(statement(record)), html.bullets(RESTS_ON)]
