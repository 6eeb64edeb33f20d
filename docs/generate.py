"""Write the generated tables of the reference pages: `python -m docs.generate`, or `make reference`.

A page marks where a table belongs: `<!-- spec: privacy -->` begins the table of that section of the spec,
`<!-- command: plan -->` the arguments of that command, and `<!-- columns: estimates -->` the columns of those files.
`<!-- end -->` ends each. Keys, types, defaults, arguments and columns come from the code. The column `meaning` of keys
and columns is written by hand in the page, and stays when the table is written again.
"""

import argparse
import inspect
import math
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pipelines.commands import parser_of
from pipelines.spec import fields, hierarchies, ordered
from pipelines.spec.models import SpecModel
from pipelines.spec.strategies import GivenStrategy
from privacy.checks import Limits
from privacy.strategies.table import OFFERS
from transforms.release.published_columns import estimates_types, nodes_types

REFERENCE = Path(__file__).parent / "reference"
BLOCK = re.compile(r"(<!-- (spec|command|columns): ([\w .*-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TODO = "TO WRITE"
"""Stands where a new key or column has no meaning yet; a test finds it."""


def _choices(names: Iterable[Any]) -> str:
    return ", ".join(f"`{name}`" for name in names)


NAMED: tuple[tuple[Any, str], ...] = (
    (GivenStrategy, f"{_choices(('auto', *OFFERS))} or section"),
    (fields.ReleaseName, "name"),
    (fields.QueryName, "name"),
    (fields.Timezone, "time zone (IANA)"),
    (fields.Duration, "duration"),
    (fields.Length, "duration or months"),
    (fields.Moment, "time"),
    (fields.MomentOrDate, "time or date"),
    (fields.Texts, "text or list"),
    (fields.Nulls, "text or list"),
    (fields.FiniteNumber, "number"),
    (ordered.Edge, "number or time"),
    (ordered.Step, "number or duration"),
    (hierarchies.NestedValues, "mapping of text to values or further mappings, or list of these"),
)
"""Types that the spec names, and the words for them in the tables."""

PLAIN = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}


def pages() -> list[Path]:
    """The pages that hold generated tables."""
    return sorted(page for page in REFERENCE.glob("*.md") if BLOCK.search(page.read_text()))


def generated(page: str) -> str:
    """Return a page with its tables as the code says now, and the meanings that it has."""

    def table(found: re.Match[str]) -> str:
        begin, kind, name, old, end = found.groups()
        return begin + "\n" + KINDS[kind](name, _meanings(old)) + "\n" + end

    return BLOCK.sub(table, page)


def sections() -> dict[str, tuple[type[fields.Section], list[str]]]:
    """Each section of a spec by its path, with the other paths at which the same section is used."""
    found: dict[type[fields.Section], list[str]] = {}
    for path, section in _sections("", SpecModel):
        found.setdefault(section, []).append(path)
    for paths in found.values():
        paths.sort(key=lambda path: path.count("."))
    return {first: (section, others) for section, (first, *others) in found.items()}


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command by its name, such as `plan` or `local plan`."""
    return dict(_commands(parser_of(), ""))


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield name, parser
    for action in below:
        for word, one in action.choices.items():
            yield from _commands(one, f"{name} {word}".strip())


def _sections(path: str, section: type[fields.Section], own: str = "") -> Iterator[tuple[str, type[fields.Section]]]:
    named = f"{path}{own}"
    yield named or "spec", section
    for name, field in section.model_fields.items():
        held = [*_held(field.annotation)]
        for between, below in held:
            several = len([one for one, _ in held if one == between]) > 1
            first = next(iter(below.model_fields.items()))
            place = f"{path}.{field.alias or name}{between}".removeprefix(".")
            own = f".{first[1].alias or first[0]}" if several or place == named else ""
            yield from _sections(place, below, own)


def _held(annotation: Any) -> Iterator[tuple[str, type[fields.Section]]]:
    if isinstance(annotation, type) and issubclass(annotation, fields.Section):
        yield "", annotation
    between = ".*" if get_origin(annotation) is dict else ""
    for part in get_args(annotation):
        yield from ((between + rest, section) for rest, section in _held(part))


def _spec_table(path: str, meanings: dict[str, str]) -> str:
    section, others = sections()[path]
    hints = get_type_hints(section, include_extras=True)
    rows = [
        (f"`{field.alias or name}`", type_words(hints[name]), _default(field), _kept(field.alias or name, meanings))
        for name, field in section.model_fields.items()
    ]
    also = f"Also the keys of {', '.join(f'`{other}`' for other in others)}.\n\n" if others else ""
    return also + _table(("key", "type", "default", "meaning"), rows)


def _command_table(name: str, _: dict[str, str]) -> str:
    parser = commands()[name]
    rows = []
    for action in parser._actions:
        if "--help" in action.option_strings:
            continue
        word = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        shown = f"`{' '.join([', '.join(action.option_strings), '' if action.nargs == 0 else word]).strip()}`"
        if action.nargs == "+":
            shown += " ..."
        rows.append((shown, "yes" if action.required else "", _escaped(parser._get_formatter()._expand_help(action))))
    summary = parser.description or ""
    return f"{summary[:1].upper()}{summary[1:].rstrip('.')}.\n\n" + _table(("argument", "required", "meaning"), rows)


def _columns_table(name: str, meanings: dict[str, str]) -> str:
    types_of = {"estimates": estimates_types, "nodes": nodes_types}[name](())
    rows = [(f"`{column}`", f"{type_}", _kept(column, meanings)) for column, type_ in types_of.items()]
    return _table(("column", "type", "meaning"), rows)


KINDS: dict[str, Callable[[str, dict[str, str]], str]] = {
    "spec": _spec_table,
    "command": _command_table,
    "columns": _columns_table,
}


def type_words(annotation: Any) -> str:
    """Return the values that a key takes, in words."""
    for known, words in NAMED:
        if annotation is known or annotation == known:
            return words
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        names = [name for part in parts[1:] for name in _names(part)]
        return _choices(names) if names else type_words(parts[0]) + _limits(parts[1:])
    if origin is Literal:
        return _choices(parts)
    if origin in (Union, types.UnionType):
        either = [type_words(part) for part in parts if part is not type(None)]
        return " or ".join(dict.fromkeys(either))
    if origin is list:
        return f"list of {type_words(parts[0])}".replace("section", "sections")
    if origin is dict:
        return f"mapping of {type_words(parts[0])} to {type_words(parts[1])}"
    if isinstance(annotation, type) and issubclass(annotation, fields.Section):
        return "section"
    return PLAIN.get(annotation, str(annotation))


def _names(validator: Any) -> Collection[str]:
    """Return the names that `fields.one_of` admits, if a validator is made by it."""
    if not isinstance(validator, BeforeValidator) or not inspect.isfunction(validator.func):
        return ()
    names: Collection[str] = inspect.getclosurevars(validator.func).nonlocals.get("names", ())
    return names


def _limits(metadata: tuple[Any, ...]) -> str:
    """Return the limits of a number, such as `, at least 1`."""
    flat = [one for part in metadata for one in (part.metadata if isinstance(part, FieldInfo) else [part])]
    words = {Ge: ("at least", "ge"), Gt: ("above", "gt"), Le: ("at most", "le"), Lt: ("below", "lt")}
    found = [f"{words[type(one)][0]} {getattr(one, words[type(one)][1]):,}" for one in flat if type(one) in words]
    of_library = {"least": "at least", "above": "above", "most": "at most", "below": "below"}
    for limits in (one for one in flat if isinstance(one, Limits)):
        given = {name: getattr(limits, name) for name in of_library}
        found += [f"{of_library[name]} {limit:,}" for name, limit in given.items() if math.isfinite(limit)]
    return f", {' and '.join(found)}" if found else ""


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value:g}`" if isinstance(value, float | Decimal) else f"`{value}`"


def _meanings(table: str) -> dict[str, str]:
    """Return the last cell of each row by the name in the first one."""
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): row[-1].strip() for row in rows}


def _kept(name: str, meanings: dict[str, str]) -> str:
    return meanings.get(name, TODO)


def _escaped(text: str) -> str:
    """Return a help text as a cell of a table shows it."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, *rows)]
    return lines[0] + "|" + "---|" * len(head) + "\n" + "".join(lines[1:])


if __name__ == "__main__":
    for page in pages():
        page.write_text(generated(page.read_text()))
