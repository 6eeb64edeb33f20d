"""`slackwater plan --compare | --vary | --target`: several specs side by side, and the smallest epsilon for an error.

Releases in the output folders are ignored: the shown plans are those of new releases.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruamel.yaml import YAML

from pipelines.common.arguments import Moment, SpecLike, moment_of, path_of
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.epochs.plans import plan_of
from pipelines.plan.accuracy import accuracy, warnings
from pipelines.plan.horizon import horizon_of
from pipelines.plan.table import columns, off_by
from pipelines.spec.document import document_of, read_document
from pipelines.spec.load import Spec, load
from pipelines.spec.series import series_text
from pipelines.spec.words import nearest
from privacy.upward import shown
from transforms.common.errors import SpecError

MOST = 64
"""Most specs that are planned side by side."""

LEAST_EPSILON, MOST_EPSILON = 1e-4, 1e4
CLOSE = 1.005
"""Largest ratio of the returned epsilon to the least one."""

Content = dict[str, Any]
Errors = dict[str, dict[str, Any]]
"""Results of pipelines.plan.accuracy, by `query: number`."""

_Planner = Callable[[float | None], tuple[Spec, Errors, list[str]]]
"""Plans a spec with another epsilon, or with its own (None); returns the spec, its errors and its warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlans(Value):
    """Plans of several specs side by side.

    Attributes:
        specs: For each spec `spec` (its path, and the values that were varied), `epsilon` (None: no epsilon reaches
            the target), `delta`, `accuracy` (of each number by `query: number`) and `warnings`.
        target: The query and the error that epsilon should reach; None without a target.
    """

    specs: list[dict[str, Any]] = field(repr=False)
    target: tuple[str, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater plan --compare --json`."""
        if self.target is None:
            return {"specs": self.specs}
        return {"specs": self.specs, "target": {"query": self.target[0], "half_width": self.target[1]}}

    def text(self) -> str:
        """Return the text that `slackwater plan --compare` prints."""
        return _text(self.specs, self.target)


def compare_plans(
    spec: SpecLike,
    *,
    compare: Sequence[SpecLike] = (),
    vary: Sequence[str] = (),
    target: str | None = None,
    until: Moment = None,
) -> ComparedPlans:
    """Plan several specs, each with each combination of what varies. Reads no data and costs no privacy.

    Args:
        spec: The path of a spec, or what `load` returns.
        compare: Other specs.
        vary: Keys and their values, such as `privacy.epsilon=0.5,1,2`.
        target: A query and a 95 % margin of error, such as `beds=20`: find the least epsilon that reaches it.
        until: Average errors over the windows up to this moment. None: as `horizon_of`.

    Raises:
        SpecError: A key that is not in the spec, invalid values, or more than 64 specs.
    """
    end = moment_of("until", until)
    paths = [path_of(one) for one in (spec, *compare)]
    ways = [_varied(said) for said in vary]
    combinations = [*itertools.product(*([(key, value) for value in values] for key, values in ways))]
    if len(paths) * len(combinations) > MOST:
        many = len(paths) * len(combinations)
        raise ArgumentError("vary", f"{many} specs to plan, at most {MOST}; vary fewer values")
    wanted = None if target is None else _target(target)
    rows = []
    with TemporaryDirectory() as folder:
        for one, settings in itertools.product(paths, combinations):
            said = [f"{key}={'null' if value is None else value}" for key, value in settings]
            name = ", ".join([*([one] if compare else []), *said]) or one
            content = read_document(Path(one)).content
            for key, value in settings:
                _set(content, key, value, one)
            label = f"{one} with {', '.join(said)}" if settings else one
            planned = _planner(content, Path(folder, Path(one).name), end, label)
            rows.append(_row(name, planned) if wanted is None else _reached(name, planned, wanted))
    return ComparedPlans(specs=rows, target=wanted)


def _planner(content: Content, path: Path, until: int | None, label: str) -> _Planner:
    """Return the planner of one spec; its errors name the spec by its label."""

    def planned(epsilon: float | None) -> tuple[Spec, Errors, list[str]]:
        if epsilon is not None:
            content["privacy"]["epsilon"] = epsilon
        said = StringIO()
        YAML(pure=True).dump(content, said)
        path.write_text(said.getvalue(), encoding="utf-8")
        try:
            spec = load(path)
            plan = plan_of(spec)
        except SpecError as error:
            hint = "; null removes a key" if re.search(r"=none\b", label) else ""
            raise SpecError(re.sub(rf"{re.escape(str(path))}(:\d+)?", lambda _: label, f"{error}{hint}")) from None
        windows = horizon_of(spec, until).windows
        found = [accuracy(query, plan, place, windows) for place, query in enumerate(spec.queries)]
        errors = {
            f"{query.name}: {series_text(number)}": number
            for query, numbers in zip(spec.queries, found, strict=True)
            for number in numbers
        }
        return spec, errors, [*warnings(spec, plan, windows, found)]

    return planned


def errors_of(content: Content, path: Path, until: int | None) -> Errors:
    """Return the errors of a spec with this content.

    Args:
        content: Content of the spec.
        path: Path at which it is written.
        until: Average errors over the windows up to this moment; None: as `horizon_of`.

    Raises:
        SpecError: The spec is wrong.
    """
    return _planner(content, path, until, str(path))(None)[1]


def _row(name: str, planned: _Planner) -> dict[str, Any]:
    spec, errors, warned = planned(None)
    privacy = spec.privacy
    return {"spec": name, "epsilon": privacy.epsilon, "delta": privacy.delta, "accuracy": errors, "warnings": warned}


def _reached(name: str, planned: _Planner, wanted: tuple[str, float]) -> dict[str, Any]:
    """Find the least epsilon for a margin of error of a query; None if no epsilon is enough."""
    query, half_width = wanted
    planned(None)  # report errors of the spec first

    def error(epsilon: float) -> float:
        return _largest(planned(epsilon)[1], query)

    epsilon = least_epsilon(error, half_width)
    spec, errors, warned = planned(epsilon or MOST_EPSILON)
    warned = [] if epsilon is None else warned
    return {"spec": name, "epsilon": epsilon, "delta": spec.privacy.delta, "accuracy": errors, "warnings": warned}


def _largest(errors: Errors, query: str) -> float:
    """Return the largest half width of a query's numbers.

    Raises:
        SpecError: There is no such query, or its errors depend on the data.
    """
    found = {name: number for name, number in errors.items() if name.split(": ")[0] == query}
    if not found:
        names = ", ".join(dict.fromkeys(name.split(": ")[0] for name in errors))
        raise ArgumentError("target", f"no query of the spec; it has {names}", query)
    halves = [number.get("half_width") for number in found.values()]
    if None in halves:
        raise ArgumentError("target", "its error depends on the data; targets are for counts and sums", query)
    return max(half for half in halves if half is not None)


def least_epsilon(error: Callable[[float], float], wanted: float) -> float | None:
    """Find by bisection the least epsilon whose error is at most `wanted`; None if no epsilon reaches it.

    Errors fall as epsilon grows, except for up to a percent when the strategy changes. The returned epsilon reaches the
    target, and no epsilon below 99 % of it does.

    >>> least_epsilon(lambda epsilon: 65 / epsilon, 20.0)
    3.25
    """
    # An error is about a constant divided by epsilon, so one known error gives a good guess of the next epsilon.
    guess = min(max(error(1.0) / wanted, LEAST_EPSILON), MOST_EPSILON)
    low, high = guess, guess
    while error(high) > wanted:
        low, high = high, 1.25 * high
        if high > MOST_EPSILON:
            return None
    while low > LEAST_EPSILON and error(low) <= wanted:
        low, high = low / 1.25, low
    while high / low > CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if error(middle) <= wanted else (middle, high)
    return _up(high) if error(_up(high)) <= wanted else high


def _up(epsilon: float) -> float:
    """Return epsilon rounded up to three digits."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return float(f"{math.ceil(epsilon / unit - 1e-9) * unit:.3g}")


def _varied(said: str) -> tuple[str, list[Any]]:
    """Return a key and its values, read as YAML."""
    key, sign, values = said.partition("=")
    if not sign or not key or not all(value.strip() for value in values.split(",")):
        raise ArgumentError("vary", "expected a key and its values, such as privacy.epsilon=0.5,1,2", said)
    return key, [document_of("--vary", f"value: {value}").content["value"] for value in values.split(",")]


def _target(said: str) -> tuple[str, float]:
    query, _, number = said.partition("=")
    try:
        half_width = float(number)
    except ValueError:
        half_width = math.nan
    if not (query and 0 < half_width < math.inf):
        raise ArgumentError("target", "expected a query and a margin of error, such as beds=20", said)
    return query, half_width


def _set(content: Content, key: str, value: Any, path: str) -> None:
    """Replace the value of a key; a part of the key is enough if only one key ends with it."""
    found = [place for place in _places(content) if f".{place}".endswith(f".{key}")]
    if len(found) != 1:
        near = nearest(key.split(".")[-1], [place.split(".")[-1] for place in _places(content)])
        meant = f" (did you mean {near}?)" if near else ""
        known = f"it could be {', '.join(found)}" if found else f"the spec has no such key{meant}; write it there first"
        raise ArgumentError("vary", f"{path}: {known}", key)
    *above, last = found[0].split(".")
    section: Any = content
    for part in above:
        section = next(one for one in section if one["name"] == part) if isinstance(section, list) else section[part]
    section[last] = value


def _places(content: Any, above: str = "") -> Iterator[str]:
    """Yield every key of a spec, with the names of queries in place of their numbers."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield f"{above}{name}"
            yield from _places(value, f"{above}{name}.")
    elif isinstance(content, list):
        for one in content:
            if isinstance(one, Mapping) and "name" in one:
                yield from _places(one, f"{above}{one['name']}.")


def _text(rows: Sequence[dict[str, Any]], wanted: tuple[str, float] | None) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row["accuracy"]))
    lines = [("spec", "epsilon", "delta", *names)]
    for row in rows:
        epsilon = f"none up to {MOST_EPSILON:g}" if row["epsilon"] is None else shown(row["epsilon"], 4)
        found = row["accuracy"]
        lines.append(
            (
                row["spec"],
                epsilon,
                shown(row["delta"]),
                *(off_by(found[name]) if name in found else "" for name in names),
            )
        )
    told = columns(lines)
    if wanted is not None:
        told += [
            "",
            f"epsilon: the least, to half a percent, with which {wanted[0]} has a 95 % margin of error of at most "
            f"{wanted[1]:g}.",
        ]
        reached = [row for row in rows if row["epsilon"] is not None]
        if len(reached) > 1:
            best = min(reached, key=lambda row: row["epsilon"])
            told.append(f"The least of all: {best['spec']}, with {shown(best['epsilon'], 4)}.")
    told += [""] if any(row["warnings"] for row in rows) else []
    everywhere = [one for one in rows[0]["warnings"] if all(one in row["warnings"] for row in rows)]
    told += [f"warning: {one}" for one in everywhere]
    told += [f"warning: {row['spec']}: {one}" for row in rows for one in row["warnings"] if one not in everywhere]
    told += ["", "For each query: 95 % margin of error, relative to the number after contribution bounding."]
    return "\n".join(told)
