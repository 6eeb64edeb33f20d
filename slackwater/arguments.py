"""Arguments as people give them, checked at once."""

from datetime import datetime

from pipelines.spec.times import microseconds
from transforms.common.errors import SpecError


def moment_of(name: str, moment: datetime | None) -> int | None:
    """Microseconds since 1970.

    Raises:
        SpecError: a time without a zone.
    """
    if moment is not None and moment.tzinfo is None:
        raise SpecError(f"{name}: the time has no zone; give one, such as datetime(2026, 1, 5, tzinfo=UTC)")
    return None if moment is None else microseconds(moment)


def count_of(name: str, count: int | None) -> int | None:
    """
    Raises:
        SpecError: less than one.
    """
    if count is not None and count < 1:
        raise SpecError(f"{name}: expected a whole number of at least 1, not {count}")
    return count
