"""`slackwater local report`: the results of a survey as one page, from its design and its estimates alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.common.arguments import refuse_ending
from pipelines.common.value import Value
from pipelines.local import quality
from pipelines.local.estimated import Estimated, read_estimates
from pipelines.local.page import page_of
from pipelines.local.survey import Survey, read_survey
from pipelines.pages.noise import NAMED
from pipelines.pages.numbers import Numbers, signal
from pipelines.spec.times import end_name
from privacy.counted import counted
from privacy.series import Series
from transforms.common.cloud import refuse_unreachable
from transforms.common.sinks import write_text

_UNTOLD = (
    "the estimates do not say which reports were left out; Parquet files do: slackwater local estimate -o with a name "
    "that ends in .parquet"
)
_ADVICE = " More people, or fewer or longer windows would reduce the noise."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSurvey(Value):
    """A page with the results of a survey.

    Attributes:
        release: Name of the survey.
        until: End of the last window.
        file: Path of the page.
        signals: For each answer the size of its noise, compared with the numbers.
        warnings: Numbers that are mostly noise, and other reasons to doubt them.
    """

    release: str
    until: str
    file: str
    signals: tuple[dict[str, Any], ...] = field(repr=False)
    warnings: tuple[str, ...]

    def text(self) -> str:
        """Return the text that `slackwater local report` prints."""
        head = f"{self.release}: results up to {end_name(self.until)}, as a page in {self.file}"
        return "\n".join([head, *(f"  warning: {one}" for one in self.warnings)])


def report(design: str | Path, estimates: str | Path, *, output: str | Path = "report.html") -> ReportedSurvey:
    """Write the results of a survey as one page.

    Args:
        design: Path of the file that `local.plan` has written.
        estimates: Path of the file that `local.estimate` has written.
        output: Path of the page, which ends in `.html`.

    Raises:
        SpecError: The files do not belong together, or the page cannot be there.
    """
    file = str(output)
    refuse_ending("output", file, [".html"])
    refuse_unreachable([file], files=[str(design), str(estimates)])
    survey = read_survey(str(design))
    estimated, told = read_estimates(str(estimates), survey)
    found = [_numbers(one) for one in estimated]
    signals = [one for numbers in found for one in _signals(numbers, survey)]
    noisy = [f"{kind}: {text}" for kind in survey.publish if (text := _warning(kind, signals))]
    write_text(file, page_of(survey, found, signals=signals, warnings=noisy, told=told))
    doubts = [_UNTOLD] if told is None else quality.warnings(told)
    return ReportedSurvey(
        release=survey.release,
        until=survey.until(len(found[0].value)),
        file=file,
        signals=tuple(signals),
        warnings=(*(f"{one}{_ADVICE}" for one in noisy), *doubts),
    )


def _numbers(of: Estimated) -> Numbers:
    return Numbers(series=Series(kind=of.kind), value=of.value, low=of.low, high=of.high, total=None)


def _signals(numbers: Numbers, survey: Survey) -> Iterator[dict[str, Any]]:
    """Yield for each answer the size of the noise, compared with the numbers."""
    for place, answer in enumerate(survey.names):
        own = slice(place, place + 1)
        one = Numbers(
            series=numbers.series,
            value=numbers.value[:, own],
            low=numbers.low[:, own],
            high=numbers.high[:, own],
            total=None,
        )
        found = signal(one, within=None)
        if found is not None:
            yield {
                "kind": numbers.series.kind,
                "answer": answer,
                "typical": found.typical,
                "half": found.half,
                "lost": found.lost,
                "noisy": found.noisy,
            }


def _warning(kind: str, signals: Sequence[dict[str, Any]]) -> str | None:
    of_kind = [one for one in signals if one["kind"] == kind]
    noisy = [one["answer"] for one in of_kind if one["noisy"]]
    if not of_kind:
        return "no number is known: there are no reports to compute them from."
    if not noisy:
        return None
    what = f"{len(noisy)} of {counted(len(of_kind), 'answer')}"
    which = f"{', '.join(noisy)} ({what})" if len(noisy) <= NAMED else what
    return f"mostly noise: {which}: more than half of these numbers cannot be distinguished from zero."
