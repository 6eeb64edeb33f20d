"""A YAML file as plain values, with the line of every key and item.

It is YAML 1.2, so `NO` and `on` are text: they may be a country or a ward, and not booleans. Times stay text too, for
`pipelines.spec.times`, since YAML reads a time without a zone as UTC.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from pipelines.spec.not_yaml import TOO_DEEP, at_line, reworded
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.sinks import read_bytes

SpecPlace = tuple[str | int, ...]
"""Keys and positions from the top of the file to a value."""

_DEEPEST = 20
_MOST_REPEATED = 100_000
"""Most values that aliases may repeat: ten lines of aliases of aliases can mean 10^10 values."""

_MOST_BITS = 1000
"""Most bits of a whole number; larger ones do not fit in a float."""

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The values of a file, with their lines.

    Attributes:
        name: Path of the file as the user gave it.
        text: Text of the file as it was read.
        content: The top mapping, made of dict, list, str, int, float, bool and None only.
        lines: Line of each place, counted from 1.
    """

    name: str
    text: str
    content: dict[str, Any]
    lines: dict[SpecPlace, int]

    def line(self, place: SpecPlace) -> int:
        """Return the line of a place, or of the nearest place above it that the file has."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_document(path: Path) -> Document:
    """Read a YAML file, local or on gs://, whose top level is a mapping.

    Raises:
        SpecError: The file cannot be read or is not such YAML; one line with the file, the line and what to do.
    """
    name = str(path)
    if path.parts[:1] == ("gs:",):
        name = name.replace("gs:/", "gs://", 1)  # a Path keeps one slash of two
    return document_of(name, _text(name, path) if "://" not in name else _remote_text(name))


def document_of(name: str, text: str) -> Document:
    """Read a text of YAML whose top level is a mapping.

    Raises:
        SpecError: As `read_document`; the message begins with `name`.
    """
    root, constructor = _composed(name, text)
    if root is None or root.tag == f"{_TAG}null":
        raise SpecError(f"{name}:1: the file is empty; it must hold a spec, beginning with `release:`")
    if not isinstance(root, MappingNode):
        raise SpecError(f"{name}:1: expected keys with values, beginning with `release:`")
    reader = _Reader(name, constructor)
    return Document(name=name, text=text, content=reader.value(root, ()), lines=reader.lines)


def _text(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"{name}: no such file; give the path of a spec, such as spec.yaml") from None
    except UnicodeDecodeError:
        raise SpecError(f"{name}: not text in UTF-8; save the spec as UTF-8") from None
    except OSError as error:
        right = "give this account the right to read it"
        advice = right if isinstance(error, PermissionError) else "give the path of a spec"
        raise SpecError(f"{name}: cannot be read ({error.strerror}); {advice}") from None


def _remote_text(name: str) -> str:
    refuse_unreachable([], files=[name])
    try:
        return read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{name}: not text in UTF-8; save the spec as UTF-8") from None
    except Exception as error:  # file systems raise different errors
        raise SpecError(f"{name}: cannot be read ({type(error).__name__}); check the path and your rights") from None


def _composed(name: str, text: str) -> tuple[Any, Any]:
    """Return the tree of nodes and what turns scalars into values. Aliases share nodes, so the tree is small."""
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = _DEEPEST + 1
    yaml.composer.warn_double_anchors = False
    try:
        return yaml.compose(text), yaml.constructor
    except MarkedYAMLError as error:
        raise SpecError(f"{name}:{reworded(error, text)}") from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(f"{name}:{at_line(line, 'a control character; remove it', text)}") from None
    except (YAMLError, ValueError, AssertionError):  # the last one of `%YAML 1.9`
        raise SpecError(f"{name}:1: not YAML; check the lines that begin with %") from None


_CALLED = {
    **dict.fromkeys(("str", "timestamp"), "text in UTF-8"),
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}


def _text_of(node: Any) -> str:
    """Return a text node as a string; refuse halves of surrogate pairs, which no file can hold."""
    node.value.encode()
    return str(node.value)


class _Reader:
    """Turns nodes into plain values.

    Attributes:
        lines: Line of each place. Keys that are merged into a mapping (`<<`) have the line of the mapping.
    """

    def __init__(self, name: str, constructor: Any) -> None:
        self.lines: dict[SpecPlace, int] = {}
        self._name = name
        self._scalars: dict[str, Callable[[Any], Any]] = {
            "str": _text_of,
            "timestamp": _text_of,
            "null": lambda _: None,
            "bool": constructor.construct_yaml_bool,
            "int": constructor.construct_yaml_int,
            "float": constructor.construct_yaml_float,
        }
        self._seen: set[int] = set()
        self._repeated = 0

    def value(self, node: Any, place: SpecPlace) -> Any:
        """Return the value of a node."""
        line = self.lines.setdefault(place, node.start_mark.line + 1)
        self._repeated += id(node) in self._seen
        self._seen.add(id(node))
        if len(place) > _DEEPEST:
            raise self._wrong(line, TOO_DEEP)
        if self._repeated > _MOST_REPEATED:
            raise self._wrong(line, f"aliases repeat more than {_MOST_REPEATED:,} values; use fewer aliases")
        tag = node.tag.removeprefix(_TAG)
        if isinstance(node, MappingNode) and tag == "map":
            return self._mapping(node, place)
        if isinstance(node, SequenceNode) and tag == "seq":
            return [self.value(item, (*place, number)) for number, item in enumerate(node.value)]
        if not isinstance(node, ScalarNode) or tag not in self._scalars:
            expected = "expected text, a number, true, false, a list or keys with values"
            raise self._wrong(line, f"{expected}; remove the tag")
        try:
            value = self._scalars[tag](node)
            if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                raise ValueError
        except (LookupError, ValueError):
            raise self._wrong(line, f"cannot be read as {_CALLED[tag]}; put it in quotes if it is text") from None
        return value

    def _mapping(self, node: Any, place: SpecPlace) -> dict[str, Any]:
        content: dict[str, Any] = {}
        merged: list[Any] = []
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                merged += value.value if isinstance(value, SequenceNode) else [value]
                continue
            if not isinstance(key, ScalarNode) or key.tag not in (f"{_TAG}str", f"{_TAG}timestamp"):
                raise self._wrong(key.start_mark.line + 1, "a key must be text; put it in quotes")
            name = self.value(key, (*place, key.value))
            if name in content:
                raise self._wrong(key.start_mark.line + 1, f"{name}: the key is given twice; keep one")
            content[name] = self.value(value, (*place, name))
        for other in merged:
            if not isinstance(other, MappingNode):
                raise self._wrong(self.lines[place], "expected keys with values to merge (`<<`)")
            content = self.value(other, (*place, "<<")) | content
        return content

    def _wrong(self, line: int, message: str) -> SpecError:
        return SpecError(f"{self._name}:{line}: {message}")
