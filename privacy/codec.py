"""JSON codec for frozen dataclasses: exact, strict, and defined by their annotations alone.

Floats and bytes are hexadecimal text, fractions are `n/d`, tuples are lists. A field that has its default is omitted,
so that a later version can add fields without a change to older documents. A value of a union of dataclasses, or of a
protocol in a table, has a member `kind`. Reading refuses a member that is missing, unknown or of another type; the
message names its place.

The codec of a class is computed once, since a release of some years has hundreds of records.
"""

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from privacy.json_values import DECIMAL, SIMPLE, Form, Json, WrongError, inside, object_of, optional, words_of

Kinds = Mapping[str, type]
"""Classes of a union or a protocol by the `kind` that documents give them."""

APART: Mapping[str, bool] = {"apart": True}
"""Metadata of a field that is stored elsewhere; `read` gets its value."""

LATER: Mapping[str, bool] = {"later": True}
"""Metadata of a field that a later version added: documents that people read also omit it if it has its default."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Codec of values.

    Attributes:
        tables: classes of each protocol that occurs in annotations of fields.
        plain: whether people read the documents. If so, floats are JSON numbers, which Python reads back exactly, and
            fields that have their defaults are written too, and are required, except for those marked `LATER`.

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
    plain: bool = False
    _forms: dict[object, Form] = field(default_factory=dict, init=False, repr=False, compare=False)

    def write(self, value: Any) -> Any:
        """Return the JSON value of a dataclass, or of a tuple of dataclasses."""
        return [self.write(one) for one in value] if isinstance(value, tuple) else self._form(type(value)).write(value)

    def write_as(self, hint: object, value: Any) -> Any:
        """Return the JSON value of a value with this annotation."""
        return self._form(hint).write(value)

    def dump(self, value: Any, *, version: int) -> Json:
        """Return the JSON object of a dataclass, with the version of its format."""
        return {"version": version, **self.write(value)}

    def read(self, hint: object, document: object, place: str = "", **given: Any) -> Any:
        """Return the value of a JSON value.

        Args:
            hint: the class or annotation of the value.
            document: the JSON value, from `write`.
            place: place of the document, for messages.
            given: values of fields that are stored elsewhere.

        Raises:
            ValueError: the document does not match the annotation.
        """
        try:
            return self._form(hint).read(document, **given)
        except WrongError as error:
            raise ValueError(error.text(place)) from None

    def load(self, hint: object, document: object, *, version: int, place: str = "") -> Any:
        """Return the value of a JSON object from `dump`.

        Args:
            hint: the class or annotation of the value.
            document: the JSON object.
            version: the expected version of its format.
            place: place of the document, for messages.

        Raises:
            ValueError: the version differs, or the document does not match the annotation.
        """
        members = self.read(dict[str, object], document, place)
        found = members.pop("version", None)
        if type(found) is not int or found != version:
            where = f"{place}.version" if place else "version"
            raise ValueError(f"{where}: not {version}, so another version of this program wrote it; use that one")
        return self.read(hint, members, place)

    def _form(self, hint: object) -> Form:
        if hint not in self._forms:
            self._forms[hint] = self._made(hint)
        return self._forms[hint]

    def _made(self, hint: object) -> Form:
        options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        if kinds := self._kinds(hint):
            form = self._one_of(kinds)
        else:
            form = self._single(tuple(one for one in options if one is not type(None)))
        return optional(form) if type(None) in options else form

    def _single(self, options: tuple[Any, ...]) -> Form:
        if all(get_origin(one) is Literal for one in options):
            return words_of([word for one in options for word in get_args(one)])
        (hint,) = options
        if isinstance(hint, type) and is_dataclass(hint):
            return self._of_class(hint)
        if get_origin(hint) is tuple:
            return self._tuple(get_args(hint))
        if get_origin(hint) in (dict, Mapping):
            return self._mapping(get_args(hint)[1])
        return DECIMAL if hint is float and self.plain else SIMPLE[hint]

    def _of_class(self, class_: type) -> Form:
        hints = get_type_hints(class_)
        kept = [one for one in fields(class_) if one.init and not one.metadata.get("apart")]
        members = [
            (one.name, _default(one), self.plain and not one.metadata.get("later"), self._form(hints[one.name]))
            for one in kept
        ]

        def write(value: Any) -> Json:
            each = ((name, getattr(value, name), default, always, form) for name, default, always, form in members)
            return {
                name: form.write(found) for name, found, default, always, form in each if always or found != default
            }

        def read(document: object, **found: Any) -> Any:
            left = object_of(document)
            for name, default, always, form in members:
                if name in left:
                    found[name] = inside(f".{name}", form, left.pop(name))
                elif always or default is MISSING:
                    raise WrongError("missing", f".{name}")
            for name in left:
                raise WrongError("unknown", f".{name}")
            try:
                return class_(**found)
            except ValueError as error:
                raise WrongError(str(error)) from None

        return Form(write, read)

    def _one_of(self, kinds: Kinds) -> Form:
        """Return the form of a class of a table, which may grow after the first document is written."""

        def write(value: Any) -> Json:
            tag = next(kind for kind, class_ in kinds.items() if class_ is type(value))
            return {"kind": tag, **self._form(type(value)).write(value)}

        def read(document: object) -> Any:
            members = object_of(document)
            if "kind" not in members:
                raise WrongError("missing", ".kind")
            return self._form(kinds[inside(".kind", words_of([*kinds]), members.pop("kind"))]).read(members)

        return Form(write, read)

    def _tuple(self, hints: tuple[object, ...]) -> Form:
        """Return the form of a list of any length of one type, or of given types."""
        fixed = None if hints[1:] == (...,) else [self._form(one) for one in hints]
        each = self._form(hints[0])

        def write(value: tuple[Any, ...]) -> list[Any]:
            return [form.write(one) for form, one in zip(fixed or [each] * len(value), value, strict=True)]

        def read(document: object) -> tuple[Any, ...]:
            if not isinstance(document, list):
                raise WrongError("expected a list")
            if fixed is not None and len(fixed) != len(document):
                raise WrongError(f"expected a list of {len(fixed)}")
            forms = zip(fixed or [each] * len(document), document, strict=True)
            return tuple(inside(f"[{n}]", form, one) for n, (form, one) in enumerate(forms))

        return Form(write, read)

    def _mapping(self, hint: object) -> Form:
        each = self._form(hint)
        return Form(
            lambda value: {name: each.write(one) for name, one in value.items()},
            lambda document: {name: inside(f".{name}", each, one) for name, one in object_of(document).items()},
        )

    def _kinds(self, hint: object) -> Kinds:
        """Return the classes among which a document must name one; empty if there is no choice."""
        if get_origin(hint) in (Union, types.UnionType):
            among = [one for one in get_args(hint) if isinstance(one, type) and is_dataclass(one)]
            named = next((self.tables[one] for one in get_args(hint) if one in self.tables), {})
            return named or ({_kind(one): one for one in among} if len(among) > 1 else {})
        return self.tables.get(hint, {})


def _default(one: "Field[Any]") -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def _kind(class_: type) -> str:
    """Return the kind of a class: `AtMost` is `at_most`."""
    return str(getattr(class_, "kind", "")) or re.sub(r"(?<=.)([A-Z])", r"_\1", class_.__name__).lower()
