"""`slackwater evaluate --compare`: the true errors of several specs side by side. NOT FOR RELEASE."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.common.arguments import Moment, SpecLike, path_of
from pipelines.common.value import Value
from pipelines.evaluate.operation import NOTICE, Evaluated, evaluate
from pipelines.plan.table import columns
from pipelines.spec.series import series_text

LOOK = (
    "If you choose a strategy, a policy or its parameters by these errors, you use the data in a way that no "
    "accounting covers. With a changelog from `slackwater simulate` it costs nothing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedErrors(Value):
    """The errors of several specs side by side. NOT FOR RELEASE: all of it is exact knowledge about people.

    Attributes:
        specs: The path of each spec, and its evaluation.
    """

    specs: tuple[tuple[str, Evaluated], ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater evaluate --compare --json`."""
        found = []
        for path, one in self.specs:
            document = one.to_json()
            if one.windows == 0:
                return document
            found.append({"spec": path, **{key: document[key] for key in _SHOWN}})
        return {"notice": NOTICE, "look": LOOK, "runs": self.specs[0][1].runs, "specs": found}

    def text(self) -> str:
        """Return the text that `slackwater evaluate --compare` prints."""
        for _, one in self.specs:
            if one.windows == 0:
                return one.text()
        return _text(self.to_json())


_SHOWN = ("release", "windows", "queries", "warnings")


def compare_errors(
    spec: SpecLike,
    compare: Sequence[SpecLike],
    *,
    until: Moment = None,
    shards: int | None = None,
    runs: int = 10,
    options: Sequence[str] = (),
) -> ComparedErrors:
    """Evaluate several specs, with the errors of numbers of one name next to each other.

    A choice by these errors uses the data in a way that no accounting covers, except with a changelog from `simulate`.

    Args:
        spec: The path of a spec, or what `load` returns.
        compare: Other specs.
        until, shards, runs, options: As in `evaluate`.

    Raises:
        SpecError, InputError: As `evaluate`.
    """
    specs = []
    for one in (spec, *compare):
        found = evaluate(one, until=until, shards=shards, runs=runs, options=options)
        specs.append((path_of(one), found))
        if found.windows == 0:
            break
    return ComparedErrors(specs=tuple(specs))


def _text(document: dict[str, Any]) -> str:
    rows = []
    for of_spec in document["specs"]:
        for query in of_spec["queries"]:
            for number in query["numbers"]:
                shown = (
                    "-" if number[key] is None else f"{number[key]:.4g}" for key in ("rmse_total", "bias", "truth")
                )
                rows.append([query["name"], series_text(number), of_spec["spec"], query["strategy"], *shown])
    # Numbers of the same name are adjacent, in the order of the first spec.
    first = list(dict.fromkeys((row[0], row[1]) for row in rows))
    rows.sort(key=lambda row: first.index((row[0], row[1])))
    heading = ["query", "number", "spec", "strategy", "in total", "bias", "truth"]
    warned = [f"warning: {of['spec']}: {one}" for of in document["specs"] for one in of["warnings"]]
    return "\n".join([document["notice"], document["look"], *warned, "", *columns([heading, *rows])])
