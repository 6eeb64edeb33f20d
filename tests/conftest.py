"""Settings for every test."""

import inspect
from collections.abc import Callable
from functools import cache
from types import MethodType
from typing import Any

from apache_beam.transforms import core
from hypothesis import settings

# Times are the machine's, not the code's: a busy one would fail a good property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_read = core.get_signature


@cache
def _of_method(function: Callable[..., Any]) -> inspect.Signature:
    """It is the same for all objects of a class."""
    return _read(MethodType(function, function))


def _remembered(function: Callable[..., Any]) -> inspect.Signature:
    return _of_method(function.__func__) if isinstance(function, MethodType) else _read(function)


# For each pipeline Beam reads the signatures of the same methods thousands of times: a fifth of what a small one takes.
core.get_signature = _remembered
