"""`slackwater plan --compare | --vary | --target`: several specs side by side, and the least epsilon for an error.

No release is looked up: what is shown is what would be planned.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruamel.yaml import YAML

from pipelines.epochs.job import timeline_of
from pipelines.epochs.plans import plan_of
from pipelines.epochs.results import Result
from pipelines.reports.accuracy import accuracy, warnings
from pipelines.reports.plan_report import series_text
from pipelines.reports.plan_text import columns, off_by
from pipelines.spec.document import document_of, read_document
from pipelines.spec.load import Spec, load
from pipelines.spec.times import now
from pipelines.spec.words import nearest
from privacy.upward import shown
from transforms.common.errors import SpecError

MOST = 64
"""Specs side by side."""

LEAST_EPSILON, MOST_EPSILON = 1e-4, 1e4
CLOSE = 1.005
"""Ratio of the epsilon that is found to the least one, at most."""

Content = dict[str, Any]
Errors = dict[str, dict[str, Any]]
"""By `query: number`, as pipelines.reports.accuracy has them."""

Planned = Callable[[float | None], tuple[Spec, Errors, list[str]]]
"""What is planned for a spec with another epsilon, or with its own; and what is warned of."""


def compared(path: str, others: Sequence[str], vary: Sequence[str], target: str | None, until: int | None) -> Result:
    """Each spec with each combination of what varies; with a target each with the least epsilon that reaches it.

    Raises:
        SpecError: a key that is not in the spec, values that are none, or too many specs.
    """
    paths = [path, *others]
    ways = [_varied(said) for said in vary]
    combinations = [*itertools.product(*([(key, value) for value in values] for key, values in ways))]
    if len(paths) * len(combinations) > MOST:
        raise SpecError(f"--vary: {len(paths) * len(combinations)} specs to plan, and at most {MOST} are; vary less")
    wanted = None if target is None else _target(target)
    rows = []
    with TemporaryDirectory() as folder:
        for one, settings in itertools.product(paths, combinations):
            name = ", ".join([*([one] if others else []), *(f"{key}={value}" for key, value in settings)]) or one
            content = read_document(Path(one)).content
            for key, value in settings:
                _set(content, key, value, one)
            label = f"{one} with {', '.join(f'{key}={value}' for key, value in settings)}" if settings else one
            planned = _planner(content, Path(folder, Path(one).name), until, label)
            rows.append(_row(name, content, planned) if wanted is None else _reached(name, content, planned, wanted))
    document = {"specs": rows, **({} if wanted is None else {"target": {"query": wanted[0], "half_width": wanted[1]}})}
    return document, _text(rows, wanted)


def _planner(content: Content, path: Path, until: int | None, label: str) -> Planned:
    """For one spec; errors call it by its label."""

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
            raise SpecError(re.sub(rf"{re.escape(str(path))}(:\d+)?", lambda _: label, str(error))) from None
        end = spec.schedule.until or now()
        windows = timeline_of(spec, end if until is None else until).windows
        found = [accuracy(query, plan, place, windows) for place, query in enumerate(spec.queries)]
        errors = {
            f"{query.name}: {series_text(number)}": number
            for query, numbers in zip(spec.queries, found, strict=True)
            for number in numbers
        }
        return spec, errors, [*warnings(spec, plan, windows, found)]

    return planned


def _row(name: str, content: Content, planned: Planned) -> dict[str, Any]:
    spec, errors, warned = planned(None)
    privacy = spec.privacy
    return {"spec": name, "epsilon": privacy.epsilon, "delta": privacy.delta, "accuracy": errors, "warnings": warned}


def _reached(
    name: str,
    content: Content,
    planned: Planned,
    wanted: tuple[str, float],
) -> dict[str, Any]:
    """The least epsilon with which no number of a query is off by more; None if none is enough."""
    query, half_width = wanted
    planned(None)  # what is wrong with the spec is said first

    def error(epsilon: float) -> float:
        return _largest(planned(epsilon)[1], query)

    epsilon = least_epsilon(error, half_width)
    spec, errors, warned = planned(epsilon or MOST_EPSILON)
    warned = [] if epsilon is None else warned
    return {"spec": name, "epsilon": epsilon, "delta": spec.privacy.delta, "accuracy": errors, "warnings": warned}


def _largest(errors: Errors, query: str) -> float:
    """The largest half width of a query's numbers.

    Raises:
        SpecError: there is no such query, or its errors depend on the data.
    """
    found = {name: number for name, number in errors.items() if name.split(": ")[0] == query}
    if not found:
        names = ", ".join(dict.fromkeys(name.split(": ")[0] for name in errors))
        raise SpecError(f"--target {query}: no query of the spec; it has {names}")
    halves = [number.get("half_width") for number in found.values()]
    if None in halves:
        raise SpecError(f"--target {query}: its error depends on the data; targets are for counts and sums")
    return max(half for half in halves if half is not None)


def least_epsilon(error: Callable[[float], float], wanted: float) -> float | None:
    """By bisection, from where it is reached: errors fall as epsilon grows, up to a percent where strategies change.

    So no less than 99 % of what is found reaches the target, and what is found does. None if nothing does.

    >>> least_epsilon(lambda epsilon: 65 / epsilon, 20.0)
    3.25
    """
    # An error is about a constant over epsilon: from one that is known the next is nearly right.
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
    """With three digits, upward."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return float(f"{math.ceil(epsilon / unit - 1e-9) * unit:.3g}")


def _varied(said: str) -> tuple[str, list[Any]]:
    """A key and its values, as YAML has them."""
    key, sign, values = said.partition("=")
    if not sign or not key or not all(value.strip() for value in values.split(",")):
        raise SpecError(f"--vary {said}: expected a key and its values, such as privacy.epsilon=0.5,1,2")
    return key, [document_of("--vary", f"value: {value}").content["value"] for value in values.split(",")]


def _target(said: str) -> tuple[str, float]:
    query, _, number = said.partition("=")
    try:
        half_width = float(number)
    except ValueError:
        half_width = math.nan
    if not (query and 0 < half_width < math.inf):
        raise SpecError(f"--target {said}: expected a query and how far off it may be, such as beds=20")
    return query, half_width


def _set(content: Content, key: str, value: Any, path: str) -> None:
    """Put a value in the place of another; the key may be the end of the whole one, if it is the end of no other."""
    found = [place for place in _places(content) if f".{place}".endswith(f".{key}")]
    if len(found) != 1:
        near = nearest(key.split(".")[-1], [place.split(".")[-1] for place in _places(content)])
        meant = f" (did you mean {near}?)" if near else ""
        known = f"it could be {', '.join(found)}" if found else f"the spec has no such key{meant}; write it there first"
        raise SpecError(f"--vary {key}: {path}: {known}")
    *above, last = found[0].split(".")
    section: Any = content
    for part in above:
        section = next(one for one in section if one["name"] == part) if isinstance(section, list) else section[part]
    section[last] = value


def _places(content: Any, above: str = "") -> Iterator[str]:
    """Every key of a spec; queries go by their names."""
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
            f"epsilon: the least, to half a percent, with which {wanted[0]} is off by {wanted[1]:g} at most.",
        ]
        reached = [row for row in rows if row["epsilon"] is not None]
        if len(reached) > 1:
            best = min(reached, key=lambda row: row["epsilon"])
            told.append(f"The least of all: {best['spec']}, with {shown(best['epsilon'], 4)}.")
    told += [""] if any(row["warnings"] for row in rows) else []
    everywhere = [one for one in rows[0]["warnings"] if all(one in row["warnings"] for row in rows)]
    told += [f"warning: {one}" for one in everywhere]
    told += [f"warning: {row['spec']}: {one}" for row in rows for one in row["warnings"] if one not in everywhere]
    told += ["", "Off by, of each query: with 95 % probability no further from the number after contribution bounding."]
    return "\n".join(told)
