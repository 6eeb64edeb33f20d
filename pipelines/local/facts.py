"""The twenty points of a disclosure for surveys of local reports (`pipelines.disclosure.facts`)."""

from pipelines.disclosure.facts import NOT_STATED, curator_text
from pipelines.local import words
from pipelines.local.promise import CONDITIONS
from pipelines.local.survey import Survey
from pipelines.pages import words as of_pages
from pipelines.spec.durations import length_text
from pipelines.spec.times import moment_text, people_time
from privacy.counted import counted
from privacy.local.document import digest
from privacy.upward import shown


def disclosure(survey: Survey) -> dict[str, str]:
    """Return the texts of all points by their names, from the design of a survey alone."""
    design, about = survey.design, dict(survey.about)
    epsilon, delta = shown(design.epsilon), shown(design.delta)
    once = design.reported == "once"
    cut_off = "" if once else "which changes were cut off, or "
    public = "which device has sent a report" if once else "that all reports of a device belong together"
    return {
        "curator": curator_text(lambda key: about.get(key, "")),
        "use": about.get("use", NOT_STATED),
        "dates": (
            f"Windows of {length_text(survey.every)} from {people_time(moment_text(survey.start))} to "
            f"{people_time(survey.until(design.windows))}. Estimates may be computed again at any time, at no cost."
        ),
        "unit": f"{words.WHO} {words.WHAT}",
        "neighbours": "All answers that one person ever gives, replaced by those of another person or by none.",
        "parameters": f"epsilon = {epsilon}, delta = {delta} for everything that one device ever sends.",
        "scope": f"The whole survey: {counted(design.windows, 'window')}. Budgets of several surveys add up.",
        "composition": (
            "Each device accounts for all of its reports together. Several devices of one person, and other surveys of "
            "the same people, add their epsilons and deltas."
        ),
        "spent": f"Once a device has sent its last report, it has spent epsilon = {epsilon}, delta = {delta}.",
        "bounds": words.bound(survey),
        "unprotected": " ".join(words.not_protected(survey)),
        "chosen": f"{about.get('justification') or NOT_STATED} The claim requires: {CONDITIONS[-1]}",
        "mechanisms": f"Each device randomises its own reports. {' '.join(words.devices(survey))}",
        "versions": f"Design {digest(design)}. Devices have their own program, whose version is not recorded.",
        "side_channels": (
            "Devices draw integers from bits of the operating system. Times and sizes of reports do not depend on "
            "answers. The time that a device takes, and failures of it, are not covered."
        ),
        "trust": "No collector is trusted: only the device knows its answers. Others see randomised reports alone.",
        "errors": (
            "Estimates have standard deviations and 95 % confidence intervals. The note below the charts states what "
            "these cover."
        ),
        "biases": (
            "Noise makes estimates neither too high nor too low on average, so they may be negative. They do not state "
            f"{cut_off}how people without a device differ."
        ),
        "odds": (
            f"{public[0].upper()}{public[1:]} is public. What readers learn about one person's answers is bounded. "
            "Compare the probability that the device sends these reports with that for any other answers: "
            + of_pages.likelihood(design.epsilon, design.delta)
        ),
        "evidence": (
            "The mechanisms have written proofs and statistical tests. Nobody outside the project has reviewed them, "
            "and no result of an audit is attached."
        ),
    }
