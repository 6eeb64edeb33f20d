"""Messages about a spec: one line for each problem, with file, line, key and what to do.

spec.yaml:14: queries[0].publsh: unknown key; did you mean 'publish'?
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from pipelines.spec.document import Document, SpecPlace
from pipelines.spec.words import ALIKE, nearest, not_one_of, show
from privacy.problems import RuleError

Problem = tuple[SpecPlace, str]
"""The place, relative to the value that a validator checks, and a message: what is wrong and what is expected."""

_RULES = "rules"
_WORD = re.compile(r"'(.*?)'")

_EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "finite_number": "a finite number",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "text that is not empty",
    "too_short": "at least {min_length}",
}

_EXAMPLES = {
    "release": "release: flights-2013",
    "changelog": "changelog: {format: parquet, path: data/*.parquet, entry: id, time: event_time}",
    "changelog.format": "format: parquet",
    "changelog.path": "path: data/*.parquet",
    "changelog.entry": "entry: entry_id, the column that names an entry",
    "changelog.time": "time: event_time, the column that holds the time of a change",
    "privacy": "privacy: {epsilon: 1.0, constraint: {at_most: 4}}",
    "privacy.epsilon": "epsilon: 1.0",
    "schedule": "schedule: {start: 2013-01-01T00:00:00Z, every: 1d}",
    "schedule.start": "start: 2013-01-01T00:00:00Z",
    "schedule.every": "every: 1d",
    "queries": "queries: [{name: entries, measure: count}]",
    "queries[].name": "name: entries",
    "queries[].measure": "measure: count",
    "queries[].publish[].settings.sliding": "sliding: 7d, the width of the sliding windows",
    "output": "output: {public: releases/wards/public, private: releases/wards/private}",
    "output.public": "public: releases/wards/public",
    "output.private": "private: releases/wards/private",
    "output.bigquery.estimates": "estimates: project.dataset.table",
    "about.curator.settings.name": "name: of the organisation",
    "about.curator.settings.type": "type: Government, Industry or Nonprofit",
    "from": "from: 0, the start of the first range",
    "to": "to: 100, the end of the last range",
    "step": "step: 5, the length of each range",
    "by": "by: [ward], the keys that the marginal keeps",
    "weights": "weights: [1, 2], how much each window matters",
    "policy": "policy: bd, the rule that decides when a window is sampled",
}
"""Examples of required keys, by their places, and for keys of sections at several places by their names."""


def refuse(problems: Iterable[Problem]) -> None:
    """Raise an error with these problems, which pydantic collects with all others; do nothing without problems."""
    found = list(problems)
    if found:
        raise PydanticCustomError(_RULES, "the spec breaks a rule", {"problems": found})


@contextmanager
def refused(*above: str | int) -> Iterator[None]:
    """Refuse what the library refuses within; its paths are below `above`.

    A rule of the library is written there alone: a section makes the library's value from its keys when it is checked.
    """
    try:
        yield
    except RuleError as problem:
        refuse([((*above, *problem.path), problem.message)])


def wrong(message: str, *place: str | int) -> PydanticCustomError:
    """Return the error that a validator raises to refuse the value that it checks, or the value at a place below it."""
    return PydanticCustomError(_RULES, "the spec breaks a rule", {"problems": [(place, message)]})


def describe(error: ValidationError, document: Document, model: type[BaseModel]) -> str:
    """Return each problem on a separate line, in the order of the file.

    Args:
        error: All problems that pydantic has found.
        document: The file, which has the line of each place.
        model: The model of the whole spec, which has the known keys.
    """
    lines = []
    for detail in error.errors(include_url=False):
        for place, message in _messages(detail, model):
            place = _in_file(place, document.content)
            where = f"{name_of(place)}: " if place else ""
            lines.append((document.line(place), f"{where}{message}"))
    lines = sorted(dict.fromkeys(lines), key=lambda line: line[0])
    return "\n".join(f"{document.name}:{line}: {text}" for line, text in lines)


def name_of(place: SpecPlace) -> str:
    """Return the text of a place.

    >>> name_of(("queries", 0, "by", "ward"))
    'queries[0].by.ward'
    """
    parts = (f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in place)
    return "".join(parts).removeprefix(".")


def _key(key: str) -> str:
    """Return a key as it is, or quoted and shortened if it could break the line."""
    return key if key.isprintable() and 0 < len(key) <= 60 else show(key)


def _messages(detail: ErrorDetails, model: type[BaseModel]) -> list[Problem]:
    place, kind = detail["loc"], detail["type"]
    context: dict[str, Any] = detail.get("ctx", {})
    if kind == _RULES:
        return [((*place, *below), message) for below, message in context["problems"]]
    if kind == "missing":
        key = "".join("[]" if isinstance(step, int) else f".{step}" for step in place)
        example = _EXAMPLES.get(key.removeprefix(".")) or _EXAMPLES.get(str(place[-1]), "it")
        return [(place, f"missing; add {example}")]
    if kind == "extra_forbidden":
        return [(place, _unknown_key(place, model))]
    if kind == "literal_error" and isinstance(detail["input"], str):
        return [(place, not_one_of(detail["input"], _WORD.findall(context["expected"])))]
    expected = _EXPECTED.get(kind)
    if kind == "literal_error":
        expected = f"one of {', '.join(_WORD.findall(context['expected']))}"
    if expected is None:
        return [(place, detail["msg"])]
    hint = "; put it in quotes" if kind == "string_type" and _scalar(detail["input"]) else ""
    return [(place, f"expected {expected.format(**context)}, not {show(detail['input'])}{hint}")]


def _scalar(value: Any) -> bool:
    return isinstance(value, int | float)


def _unknown_key(place: SpecPlace, model: type[BaseModel]) -> str:
    return unknown_key(str(place[-1]), _known_keys(place[:-1], model))


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Return the message for a key that is not known.

    >>> unknown_key("marginal", ["sliding", "marginals"])
    "unknown key; did you mean 'marginals'?"
    """
    if meant := nearest(key, known, alike=ALIKE):
        return f"unknown key; did you mean {meant!r}?"
    return f"unknown key; the keys here are {', '.join(known)}"


def _known_keys(place: SpecPlace, model: type[BaseModel]) -> list[str]:
    """Return the keys of the model at a place; positions and free keys stay at the model already found.

    Of several models at a place, a step that is a tag may name one. Otherwise, it is the first one.
    """
    models = [model]
    for step in place:
        field = model.model_fields.get(str(step))
        if field is not None:
            models = [*_models_in(field.annotation)] or models
            model = models[0]
        model = next((one for one in models if one.__name__ == step), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _in_file(place: SpecPlace, content: Any) -> SpecPlace:
    """Return the place without steps that the file does not have, such as item 0 of a value that is not a list."""
    kept: list[str | int] = []
    for position, step in enumerate(place):
        last = position == len(place) - 1
        if isinstance(content, Mapping) and isinstance(step, str):
            if step not in content and not last:
                continue
            content = content.get(step)
        elif isinstance(content, list) and isinstance(step, int) and step < len(content):
            content = content[step]
        else:
            continue
        kept.append(step)
    return tuple(kept)
