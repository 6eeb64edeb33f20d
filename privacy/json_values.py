"""JSON forms of simple values, for `privacy.codec`, and JSON values as text.

Readers refuse all other values. The message says what was expected; `WrongError` collects the place.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
"""A JSON object."""

_FRACTION = r"-?\d{1,4300}(/[1-9]\d{0,4299})?"
"""With as many digits as Python converts."""


@dataclass(frozen=True, slots=True)
class Form:
    """Writer and reader of the values of one annotation."""

    write: Callable[[Any], Any]
    read: Callable[..., Any]


class WrongError(Exception):
    """A fault of a document, and the steps that lead to it, the innermost first."""

    def __init__(self, problem: str, *steps: str) -> None:
        super().__init__(problem)
        self.problem, self.steps = problem, [*steps]

    def text(self, place: str) -> str:
        where = (place + "".join(reversed(self.steps))).removeprefix(".")
        where = where or ("the whole" if self.problem.startswith("expected") else "")
        return f"{where}: {self.problem}" if where else self.problem


def parsed(content: str | bytes) -> Any:
    """Return a JSON value.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def indented(document: object) -> bytes:
    """Return a JSON value as the text of a file."""
    return json.dumps(document, indent=1).encode()


def digest_of(document: object) -> str:
    """Return the SHA-256 of a JSON value in hexadecimal; it does not depend on the order of members."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def inside(step: str, form: Form, document: object) -> Any:
    """Return the value of a member of a document; its errors name the member.

    Args:
        step: name of the member, for messages.
        form: reader of the member.
        document: JSON value of the member.
    """
    try:
        return form.read(document)
    except WrongError as error:
        error.steps.append(step)
        raise


def optional(form: Form) -> Form:
    return Form(
        lambda value: None if value is None else form.write(value),
        lambda document: None if document is None else form.read(document),
    )


def words_of(words: list[Any]) -> Form:
    def read(document: object) -> Any:
        if document not in words:
            raise WrongError(f"expected one of {', '.join(words)}")
        return document

    return Form(_itself, read)


def _number(value: object) -> float:
    try:
        number = float.fromhex(value) if isinstance(value, str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number.hex() != value:
        raise WrongError(f"expected a finite number as hexadecimal text, such as {(1.5).hex()}")
    return number


def _decimal(value: object) -> float:
    try:
        number = float(value) if type(value) in (int, float) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise WrongError("expected a finite number")
    return number


def _fraction(value: object) -> Fraction:
    if isinstance(value, str) and re.fullmatch(_FRACTION, value):
        number = Fraction(value)
        if str(number) == value:
            return number
    raise WrongError("expected a fraction as text, such as 3/4")


def _bytes(value: object) -> bytes:
    if not isinstance(value, str) or not re.fullmatch(r"([0-9a-f]{2})*", value):
        raise WrongError("expected hexadecimal text, two digits a byte")
    return bytes.fromhex(value)


def _of_type(type_: type, expected: str) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if type(value) is not type_:
            raise WrongError(f"expected {expected}")
        return value

    return read


def _itself(value: Any) -> Any:
    return value


SIMPLE: dict[object, Form] = {
    bool: Form(_itself, _of_type(bool, "true or false")),
    int: Form(_itself, _of_type(int, "an integer")),
    str: Form(_itself, _of_type(str, "text")),
    float: Form(lambda value: float(value).hex(), _number),
    Fraction: Form(str, _fraction),
    bytes: Form(bytes.hex, _bytes),
    object: Form(_itself, _itself),
}
DECIMAL = Form(float, _decimal)


def object_of(document: object) -> Json:
    if not isinstance(document, dict):
        raise WrongError("expected an object")
    return dict(document)
