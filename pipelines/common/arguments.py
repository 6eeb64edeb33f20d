"""Types and checks of the arguments that the functions of commands take."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from pipelines.common.errors import ArgumentError
from pipelines.spec.load import Spec, load
from pipelines.spec.paths import within
from pipelines.spec.times import MICROSECOND, microseconds, parse_time
from transforms.common.errors import SpecError
from transforms.common.shown_tables import ENDINGS

SpecLike: TypeAlias = str | Path | Spec
"""A spec: its path, or what `load` returns. Commands that read a public folder also take the folder's path."""

Moment: TypeAlias = datetime | str | None
"""A moment with a zone, or text in ISO 8601; None for the default."""

MOST = 1e12
"""Numbers of this size and above are refused."""


def spec_of(spec: SpecLike) -> Spec:
    """Return a spec, and read it unless it is read already.

    Raises:
        SpecError: The spec is wrong, or its file has changed since it was read.
    """
    if not isinstance(spec, Spec):
        return load(spec)
    if load(spec.path) != spec:
        raise SpecError(f"{spec.path}: has changed since it was read; load it again")
    return spec


def path_of(spec: SpecLike) -> str:
    """Return the path of a spec or of a public folder.

    Raises:
        SpecError: The spec's file has changed since it was read.
    """
    return str(spec_of(spec).path) if isinstance(spec, Spec) else str(spec)


def moment_of(parameter: str, moment: Moment) -> int | None:
    """Return a moment in microseconds since 1970, UTC; None if no moment is given.

    Raises:
        ArgumentError: The moment has no zone, or is not a moment, such as a date.
    """
    if isinstance(moment, str):
        try:
            moment = parse_time(moment)
        except ValueError as error:
            raise ArgumentError(parameter, str(error)) from None
    if moment is not None and not isinstance(moment, datetime):
        raise ArgumentError(
            parameter, "expected a datetime with a zone, such as datetime(2026, 1, 5, tzinfo=UTC), or text"
        )
    if moment is not None and moment.tzinfo is None:
        raise ArgumentError(parameter, "the time has no zone; give one, such as datetime(2026, 1, 5, tzinfo=UTC)")
    return None if moment is None else microseconds(moment)


def duration_of(parameter: str, duration: timedelta | None) -> int | None:
    """Return a duration in microseconds; None if no duration is given.

    Raises:
        ArgumentError: The duration is not above zero, or not a timedelta.
    """
    if duration is None:
        return None
    if not isinstance(duration, timedelta) or duration < MICROSECOND:
        expected = f"expected a duration above zero, such as timedelta(days=5), not {duration}"
        raise ArgumentError(parameter, expected)
    return duration // MICROSECOND


def refuse_unknown(given: Iterable[str], keywords: type) -> None:
    """Refuse unknown keyword arguments of a function whose keywords a typed dictionary names.

    Args:
        given: Names of the given keyword arguments.
        keywords: The typed dictionary.

    Raises:
        TypeError: A name is unknown, as Python raises it for a function that lists its keywords.
    """
    for name in given:
        if name not in keywords.__annotations__:
            raise TypeError(f"unexpected keyword argument {name!r}")


def refuse_small(parameter: str, count: int | None, *, least: int = 1) -> None:
    """Refuse a count that is too small.

    Args:
        parameter: Name of the parameter.
        count: The count; None: not given.
        least: The least allowed count.

    Raises:
        ArgumentError: The count is below `least`.
    """
    if count is not None and count < least:
        raise ArgumentError(parameter, f"expected a whole number of at least {least}, not {count}")


def refuse_not_positive(parameter: str, number: float) -> None:
    """Refuse a number that is not positive.

    Raises:
        ArgumentError: The number is not above zero, not a number, or too large.
    """
    if not 0 < number < MOST:
        raise ArgumentError(parameter, f"expected a number above 0, not {number}")


def refuse_inside(parameter: str, output: str | None, public: str) -> None:
    """Refuse an output file in a public folder.

    Args:
        parameter: Name of the parameter.
        output: Path of the output file; None: no file.
        public: The public folder.

    Raises:
        ArgumentError: The file would lie in the public folder.
    """
    if output is not None and within(output, public):
        raise ArgumentError(parameter, "lies in the public folder, which may hold only published files", output)


def refuse_ending(parameter: str, output: str | None, endings: Sequence[str] = ENDINGS) -> None:
    """Refuse the name of an output file with an unsupported ending.

    Args:
        parameter: Name of the parameter.
        output: Path of the output file; None: no file.
        endings: Supported endings.

    Raises:
        ArgumentError: The name has none of these endings.
    """
    if output is not None and Path(output).suffix not in endings:
        raise ArgumentError(parameter, f"the name must end in {', '.join(endings)}", output)
