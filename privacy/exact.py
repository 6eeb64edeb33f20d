"""Values as JSON and back, exactly: what is written today is read the same by every later version.

Floats are hexadecimal text (`float.hex`), which every language reads to the last bit; integers are numbers. Reading is
strict: a member that is missing, unknown or of another kind is an error that names its place.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Word = TypeVar("Word", bound=str)

Json = dict[str, Any]
"""A JSON object."""


def parsed(content: str | bytes) -> Any:
    """A JSON value.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


class Members:
    """The members of a JSON object; each is taken once, and `end` refuses what is left over.

    >>> members = Members({"scale": (3.0).hex(), "windows": 7}, "part")
    >>> members.number("scale"), members.count("windows")
    (3.0, 7)
    >>> members.text("name")
    Traceback (most recent call last):
    ValueError: part.name: missing
    """

    def __init__(self, value: object, place: str = "") -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{place or 'the whole'}: expected an object")
        self._left = dict(value)
        self._place = place

    def number(self, key: str) -> float:
        """A finite float."""
        value = self.take(key)
        try:
            number = float.fromhex(value) if isinstance(value, str) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number) or number.hex() != value:
            raise self.wrong(key, f"a finite number as hexadecimal text, such as {(1.5).hex()}")
        return number

    def optional_number(self, key: str) -> float | None:
        return None if self.is_none(key) else self.number(key)

    def count(self, key: str) -> int:
        """An integer of either sign."""
        value = self.take(key)
        if type(value) is not int:
            raise self.wrong(key, "an integer")
        return value

    def positive_count(self, key: str) -> int:
        count = self.count(key)
        if count < 1:
            raise self.wrong(key, "an integer of at least 1")
        return count

    def optional_count(self, key: str) -> int | None:
        return None if self.is_none(key) else self.count(key)

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if type(value) is not bool:
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str) -> str:
        value = self.take(key)
        if type(value) is not str:
            raise self.wrong(key, "text")
        return value

    def word(self, key: str, words: tuple[Word, ...]) -> Word:
        """One of these."""
        value = self.take(key)
        for word in words:
            if word == value:
                return word
        raise self.wrong(key, f"one of {', '.join(words)}")

    def optional_word(self, key: str, words: tuple[Word, ...]) -> Word | None:
        return None if self.is_none(key) else self.word(key, words)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._list(key)
        if not all(type(text) is str for text in value):
            raise self.wrong(key, "a list of texts")
        return tuple(value)

    def counts(self, key: str) -> tuple[int, ...]:
        value = self._list(key)
        if not all(type(count) is int for count in value):
            raise self.wrong(key, "a list of integers")
        return tuple(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Finite floats."""
        each = [Members({"": value}, f"{self.place(key)}[{number}]") for number, value in enumerate(self._list(key))]
        return tuple(one.number("") for one in each)

    def triples(self, key: str) -> tuple[tuple[int, int, int], ...]:
        value = self._list(key)
        if not all(isinstance(each, list) and [type(number) for number in each] == [int] * 3 for each in value):
            raise self.wrong(key, "a list of lists of three integers")
        return tuple((a, b, c) for a, b, c in value)

    def of(self, key: str) -> "Members":
        """An object."""
        return Members(self.take(key), self.place(key))

    def each(self, key: str) -> Iterator["Members"]:
        """The objects of a list."""
        for number, value in enumerate(self._list(key)):
            yield Members(value, f"{self.place(key)}[{number}]")

    def has(self, key: str) -> bool:
        """Whether a member is left."""
        return key in self._left

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Errors of values that are made from the members name the place."""
        try:
            yield
        except ValueError as error:
            named = str(error).startswith(self._place)
            raise error if named else ValueError(f"{self._place}: {error}") from None

    def take(self, key: str) -> Any:
        """A member, whatever it is."""
        if key not in self._left:
            raise ValueError(f"{self.place(key)}: missing")
        return self._left.pop(key)

    def is_none(self, key: str) -> bool:
        """Whether a member is there and null; it is taken only then."""
        if key in self._left and self._left[key] is None:
            del self._left[key]
            return True
        return False

    def rest(self) -> Json:
        """What nobody has taken."""
        return dict(self._left)

    def end(self) -> None:
        """Refuse members that nobody has taken."""
        for key in self._left:
            raise ValueError(f"{self.place(key)}: unknown")

    def place(self, key: str) -> str:
        return f"{self._place}.{key}" if self._place else key

    def wrong(self, key: str, expected: str) -> ValueError:
        return ValueError(f"{self.place(key)}: expected {expected}")

    def _list(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        return value
