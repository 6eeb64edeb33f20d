"""A YAML file as plain values, with the line of every key and item.

YAML 1.2, so that `NO` and `on` are text: they are countries and wards before they are booleans.
Times stay text too, for `pipelines.spec.times`: YAML's own rule takes a time without a zone for UTC.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.sinks import read_bytes

Place = tuple[str | int, ...]
"""Keys and positions from the top of the file to a value."""

_DEEPEST = 20
_TOO_DEEP = "nested too deeply; a spec needs a few levels only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file says, and where.

    Attributes:
        name: the file's path as the user gave it.
        text: the file as it was read.
        content: the top mapping, made of dict, list, str, int, float, bool and None only.
        lines: for every place its line, counted from 1.
    """

    name: str
    text: str
    content: dict[str, Any]
    lines: dict[Place, int]

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest place above it that the file has."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


class Constructor(RoundTripConstructor):
    """The round-trip constructor, except that a timestamp is left as it is written."""


def _as_written(_constructor: Constructor, node: Any) -> str:
    return str(node.value)


Constructor.add_constructor("tag:yaml.org,2002:timestamp", _as_written)


def read_document(path: Path) -> Document:
    """Read a YAML file, local or on gs://, whose top level is a mapping.

    Raises:
        SpecError: one line with the file, the line and what to do.
    """
    name = str(path)
    if path.parts[:1] == ("gs:",):
        name = name.replace("gs:/", "gs://", 1)  # a Path keeps one slash of two
    return document_of(name, _text(name, path) if "://" not in name else _remote_text(name))


def document_of(name: str, text: str) -> Document:
    """Text as YAML whose top level is a mapping.

    Raises:
        SpecError: as `read_document`; the message begins with `name`.
    """
    parsed = _parse(name, text)
    if parsed is None:
        raise SpecError(f"{name}:1: the file is empty; it must hold a spec, beginning with `release:`")
    if not isinstance(parsed, CommentedMap):
        raise SpecError(f"{name}:1: expected keys with values, beginning with `release:`")
    lines: dict[Place, int] = {(): parsed.lc.line + 1}
    return Document(name=name, text=text, content=_plain(parsed, name, (), lines), lines=lines)


def _text(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"{name}: no such file; give the path of a spec, such as spec.yaml") from None
    except UnicodeDecodeError:
        raise SpecError(f"{name}: not text in UTF-8; save the spec as UTF-8") from None
    except OSError as error:
        raise SpecError(f"{name}: cannot be read ({error.strerror}); give the path of a spec") from None


def _remote_text(name: str) -> str:
    refuse_unreachable([], files=[name])
    try:
        return read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{name}: not text in UTF-8; save the spec as UTF-8") from None
    except Exception as error:  # each file system has its own
        raise SpecError(f"{name}: cannot be read ({type(error).__name__}); check the path and your rights") from None


def _parse(name: str, text: str) -> Any:
    yaml = YAML(typ="rt", pure=True)
    yaml.Constructor = Constructor
    try:
        return yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise SpecError(f"{name}:{line}: {_problem(error)}") from None
    except RecursionError:
        raise SpecError(f"{name}:1: {_TOO_DEEP}") from None
    except (YAMLError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else "unreadable"
        raise SpecError(f"{name}:1: not YAML: {first}") from None


def _problem(error: MarkedYAMLError) -> str:
    problem = " ".join(str(error.problem or error.context).split())
    if isinstance(error, DuplicateKeyError):
        key = re.search(r'duplicate key "(.*?)" with', problem)
        return f"{key[1] if key else 'a key'}: the key is given twice; keep one"
    if "'\\t'" in problem:
        return "a tab where YAML expects spaces; indent with spaces"
    if "another document" in problem:
        return "a second document begins here; a spec is one document, remove `---`"
    return f"not YAML: {problem}"


def _plain(value: Any, name: str, place: Place, lines: dict[Place, int]) -> Any:
    """Copy a parsed value into plain Python, and note the line of everything in it."""
    if len(place) > _DEEPEST:
        raise SpecError(f"{name}:{lines[place]}: {_TOO_DEEP}")
    if isinstance(value, CommentedMap):
        return dict(_entries(value, name, place, lines))
    if isinstance(value, CommentedSeq):
        for position in range(len(value)):
            lines[(*place, position)] = value.lc.item(position)[0] + 1
        return [_plain(item, name, (*place, i), lines) for i, item in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):  # ruamel's own subclasses remember how a scalar was written
        if isinstance(value, kind):
            return kind(value)
    expected = "expected text, a number, true, false, a list or keys with values"
    raise SpecError(f"{name}:{lines[place]}: {expected}; remove the tag")


def _entries(mapping: CommentedMap, name: str, place: Place, lines: dict[Place, int]) -> Iterator[tuple[str, Any]]:
    for key, value in mapping.items():
        # A merged key (`<<`) has no line of its own: it stands where the mapping does.
        known = mapping.lc.data is not None and key in mapping.lc.data
        line = mapping.lc.key(key)[0] + 1 if known else lines[place]
        if not isinstance(key, str):
            raise SpecError(f"{name}:{line}: a key must be text; put it in quotes")
        lines[(*place, str(key))] = line
        yield str(key), _plain(value, name, (*place, str(key)), lines)
