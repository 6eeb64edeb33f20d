"""Values as JSON and back, exactly and strictly, from the annotations of frozen dataclasses alone.

Floats and bytes are hexadecimal text, fractions are `n/d`, tuples are lists. A field that has its default is left out,
so that a later version can add fields without a change to older documents. A value of a union of dataclasses, or of a
protocol in a table, has a member `kind`. Reading refuses a member that is missing, unknown or of another type; the
message names its place.
"""

import math
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")

Json = dict[str, Any]
"""A JSON object."""

Kinds = Mapping[str, type]
"""The classes of a union or a protocol by the `kind` that documents give them."""


APART: Mapping[str, bool] = {"apart": True}
"""Metadata of a field that is kept elsewhere; `read` is given its value."""


class _Absent:
    """A member that is not in the document."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Write and read values.

    Attributes:
        tables: the classes of each protocol that fields are annotated with.

    >>> @dataclass(frozen=True)
    ... class Noise:
    ...     scale: float
    ...     windows: int | None = None
    >>> codec = Codec()
    >>> codec.write(Noise(scale=3.0))
    {'scale': '0x1.8000000000000p+1'}
    >>> codec.read(Noise, {"scale": (3.0).hex(), "windows": 7})
    Noise(scale=3.0, windows=7)
    >>> codec.read(Noise, {"windows": 7.5, "scale": (3.0).hex()}, "part")
    Traceback (most recent call last):
    ValueError: part.windows: expected an integer
    """

    tables: Mapping[object, Kinds] = field(default_factory=dict)

    def write(self, value: Any, hint: object = None) -> Any:
        """The JSON value of a value.

        Args:
            value: a dataclass or what its fields may hold.
            hint: its annotation, if it is another than its class.
        """
        kinds = self._kinds(hint)
        if is_dataclass(value) and not isinstance(value, type):
            hints = _hints(type(value))
            members = {
                one.name: self.write(getattr(value, one.name), hints[one.name])
                for one in fields(value)
                if one.init and not one.metadata.get("apart") and getattr(value, one.name) != _default(one)
            }
            tag = next((kind for kind, class_ in kinds.items() if class_ is type(value)), None)
            return members if tag is None else {"kind": tag, **members}
        if isinstance(value, tuple):
            each = _elements(hint, len(value)) if hint is not None else (None,) * len(value)
            return [self.write(one, its) for one, its in zip(value, each, strict=True)]
        if float in (hint, *get_args(hint)) and value is not None:
            return float(value).hex()
        if isinstance(value, Fraction):
            return str(value)
        return value.hex() if isinstance(value, float | bytes) else value

    def read(self, hint: type[Value] | object, document: object, place: str = "", **given: Any) -> Any:
        """The value of a JSON value.

        Args:
            hint: the class or annotation of the value.
            document: what `write` gave.
            place: where the document is, for messages.
            given: fields that are kept elsewhere.

        Raises:
            ValueError: the document is not of such a value.
        """
        options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        if document is None and type(None) in options:
            return None
        kinds, options = self._kinds(hint), tuple(one for one in options if one is not type(None))
        if kinds:
            members = _object(document, place)
            kind = self.read(Literal[tuple(kinds)], members.pop("kind", _Absent), _of(place, "kind"))
            return self._built(kinds[kind], members, place, given)
        if all(get_origin(one) is Literal for one in options):
            words = [word for one in options for word in get_args(one)]
            if document not in words or type(document) is not str:
                raise _wrong(place, document, f"one of {', '.join(words)}")
            return document
        (plain,) = options
        if isinstance(plain, type) and is_dataclass(plain):
            return self._built(plain, _object(document, place), place, given)
        if get_origin(plain) is tuple:
            if not isinstance(document, list):
                raise _wrong(place, document, "a list")
            each = _elements(plain, len(document))
            if len(each) != len(document):
                raise _wrong(place, document, f"a list of {len(each)}")
            return tuple(
                self.read(its, one, f"{place}[{n}]") for n, (its, one) in enumerate(zip(each, document, strict=True))
            )
        return _PLAIN[plain](document, place)

    def _built(self, class_: type, members: Json, place: str, given: Json) -> Any:
        hints, found = _hints(class_), dict(given)
        for one in fields(class_):
            if one.init and one.name not in given and (one.name in members or _default(one) is MISSING):
                found[one.name] = self.read(hints[one.name], members.pop(one.name, _Absent), _of(place, one.name))
        for name in members:
            raise ValueError(f"{_of(place, name)}: unknown")
        try:
            return class_(**found)
        except ValueError as error:
            raise ValueError(f"{place}: {error}" if place else str(error)) from None

    def _kinds(self, hint: object) -> Kinds:
        """The classes among which a document must name one; empty if there is no choice."""
        if get_origin(hint) in (Union, types.UnionType):
            among = [one for one in get_args(hint) if isinstance(one, type) and is_dataclass(one)]
            named = next((self.tables[one] for one in get_args(hint) if one in self.tables), {})
            return named or ({_kind(one): one for one in among} if len(among) > 1 else {})
        return self.tables.get(hint, {})


def _number(value: object, place: str) -> float:
    try:
        number = float.fromhex(value) if isinstance(value, str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number.hex() != value:
        raise _wrong(place, value, f"a finite number as hexadecimal text, such as {(1.5).hex()}")
    return number


def _fraction(value: object, place: str) -> Fraction:
    if not isinstance(value, str) or not re.fullmatch(r"-?\d+(/[1-9]\d*)?", value) or str(Fraction(value)) != value:
        raise _wrong(place, value, "a fraction as text, such as 3/4")
    return Fraction(value)


def _bytes(value: object, place: str) -> bytes:
    if not isinstance(value, str) or not re.fullmatch(r"([0-9a-f]{2})*", value):
        raise _wrong(place, value, "hexadecimal text, two digits a byte")
    return bytes.fromhex(value)


def _of_type(type_: type, expected: str) -> Callable[[object, str], Any]:
    def read(value: object, place: str) -> Any:
        if type(value) is not type_:
            raise _wrong(place, value, expected)
        return value

    return read


_PLAIN: dict[type, Callable[[object, str], Any]] = {
    bool: _of_type(bool, "true or false"),
    int: _of_type(int, "an integer"),
    str: _of_type(str, "text"),
    float: _number,
    Fraction: _fraction,
    bytes: _bytes,
}


@cache
def _hints(class_: type) -> dict[str, Any]:
    return get_type_hints(class_)


def _default(one: "Field[Any]") -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def _elements(hint: object, length: int) -> tuple[object, ...]:
    """The annotation of each element of a tuple, which may be optional."""
    of = next((one for one in (hint, *get_args(hint)) if get_origin(one) is tuple), tuple[Any, ...])
    each = get_args(of)
    return each[:1] * length if each[1:] == (...,) else each


def _kind(class_: type) -> str:
    """`AtMost` is `at_most`."""
    return str(getattr(class_, "kind", "")) or re.sub(r"(?<=.)([A-Z])", r"_\1", class_.__name__).lower()


def _object(document: object, place: str) -> Json:
    if not isinstance(document, dict):
        raise _wrong(place or "the whole", document, "an object")
    return dict(document)


def _of(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _wrong(place: str, value: object, expected: str) -> ValueError:
    return ValueError(f"{place}: missing" if value is _Absent else f"{place}: expected {expected}")
