"""Kinds of values that several sections of a spec share, as pydantic types."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from typing import Annotated, Any, TypeVar
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
)

from pipelines.spec.durations import parse_duration, parse_length
from pipelines.spec.errors import wrong
from pipelines.spec.times import microseconds, parse_moment_or_date, parse_time
from pipelines.spec.words import ALIKE, nearest, not_one_of, show
from transforms.common.zones import zone_of

Parsed = TypeVar("Parsed")
Key = TypeVar("Key")
Wanted = TypeVar("Wanted")


class Section(BaseModel):
    """Keys that belong together. Unknown keys are refused, and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _reader(parse: Callable[[str], Parsed], example: str) -> Callable[[Any], Parsed]:
    def read(value: Any) -> Parsed:
        if not isinstance(value, str):
            raise wrong(f"expected {example}, not {show(value)}")
        try:
            return parse(value)
        except ValueError as error:
            raise wrong(str(error)) from None

    return read


def one_of(names: Collection[str]) -> Callable[[Any], Any]:
    """Return a validator that refuses all values except these names."""

    def check(value: Any) -> Any:
        if not isinstance(value, str):
            raise wrong(f"expected one of {', '.join(names)}, not {show(value)}")
        if value not in names:
            raise wrong(not_one_of(value, names))
        return value

    return check


def as_list(value: Any) -> Any:
    """Return a list as it is, and any other value as a list of one item."""
    return value if isinstance(value, list) else [value]


def of_kind(values: Mapping[Key, object], kind: type[Wanted]) -> dict[Key, Wanted]:
    """Return the values of a class, by their keys or places."""
    return {key: value for key, value in values.items() if isinstance(value, kind)}


def _word_or_settings(value: Any) -> str:
    return "word" if isinstance(value, str) else "settings"


# A value that is a word or a mapping. The tags keep pydantic from checking it as the other kind and reporting that too.
# A tag is a step in the place of a problem. pipelines.spec.errors leaves it out, since the file does not have it.
WORD, SETTINGS = Tag("word"), Tag("settings")
EITHER = Discriminator(_word_or_settings)


def _list_or_settings(value: Any) -> str:
    if not isinstance(value, dict | BaseModel):
        return "listed"
    given = value if isinstance(value, dict) else type(value).model_fields
    return next((tag for key, tag in _TAGS.items() if key in given), "settings")


_TAGS = {"discover": "DiscoverSection", "tree": "HierarchySection"}
LISTED, DISCOVER, HIERARCHY = Tag("listed"), Tag("DiscoverSection"), Tag("HierarchySection")
LIST_OR_SETTINGS = Discriminator(_list_or_settings)


NOT_YAML_NULL = "expected text, not the null of YAML; put it in quotes, such as 'NULL' or ''"


def _not_yaml_null(value: Any) -> Any:
    if value is None:
        raise wrong(NOT_YAML_NULL)
    return value


def timezone_named(name: str) -> str:
    """Check that a time zone is known, and return its name.

    Raises:
        PydanticCustomError: The zone is unknown; the message names the one that was probably meant.
    """
    try:
        zone_of(name)
    except ValueError:
        zones = available_timezones()
        cities = {zone.rpartition("/")[2]: zone for zone in sorted(zones, key=lambda zone: zone.startswith("Europe"))}
        written = name.strip().title().replace(" ", "_")
        meant = nearest(written, zones) if "/" in name else cities.get(nearest(written, cities, alike=ALIKE) or "")
        hint = f"; did you mean {meant!r}?" if meant else ", such as Europe/Paris"
        raise wrong(f"{show(name)} is not an IANA time zone{hint}") from None
    return name


def _release(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", name):
        raise wrong(
            f"expected a name of lower-case letters, digits, '.', '_' and '-', such as flights-2013, not {show(name)}"
        )
    return name


def _query(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,99}", name):
        raise wrong(
            f"expected a name of letters, digits, '_' and '-' that begins with a letter or '_', not {show(name)}"
        )
    return name


def _bounded(value: Any) -> Any:
    if type(value) is int and not math.isfinite(_float(value)):
        raise wrong("expected a finite number, not one with hundreds of digits")
    return value


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], BeforeValidator(as_list), Field(min_length=1)]
Nulls = Annotated[list[Annotated[str, BeforeValidator(_not_yaml_null)]], BeforeValidator(as_list), Field(min_length=1)]
FiniteNumber = Annotated[float, BeforeValidator(_bounded), Field(allow_inf_nan=False)]
ReleaseName = Annotated[str, AfterValidator(_release)]
QueryName = Annotated[str, AfterValidator(_query)]
Timezone = Annotated[str, AfterValidator(timezone_named)]
Duration = Annotated[int, PlainValidator(_reader(parse_duration, "a duration such as 1d"))]
Length = Annotated[int, PlainValidator(_reader(parse_length, "a duration such as 1d"))]
"""Length of a window, which may also be a number of months."""
Moment = Annotated[
    datetime,
    PlainValidator(_reader(parse_time, "a time such as 2013-01-01T00:00:00Z")),
    PlainSerializer(microseconds),
]


def _settled(moment: datetime | date) -> int | str:
    return microseconds(moment) if isinstance(moment, datetime) else moment.isoformat()


MomentOrDate = Annotated[
    datetime | date,
    PlainValidator(_reader(parse_moment_or_date, "a time such as 2013-01-01T00:00:00Z")),
    PlainSerializer(_settled),
]
