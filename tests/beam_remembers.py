"""Caches of facts that Beam derives thousands of times for each pipeline, which is half of a small pipeline's time.

The methods of all objects of a class have the same arguments and types, and thereby states and timers. Options of one
kind are the same for the same flags. The origin of a type hint appears only in messages that no test reads. The size
of a cached state is a constant, since states in tests are small. So are pickled functions, which Beam compresses in
blocks of 900 kB.

Importing this module changes Beam in the whole process.
"""

import bz2
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

from apache_beam import DoFn
from apache_beam.internal import cloudpickle_pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core, userstate
from apache_beam.typehints.decorators import IOTypeHints

_read_arguments = core.get_function_args_defaults
_read_hints = IOTypeHints.from_callable
_read_source = core._check_fn_use_yield_and_return
_read_specs = userstate.get_dofn_specs
_view_uncached = PipelineOptions.view_as

_specs: dict[type[DoFn], Any] = {}


@cache
def _of_method(function: Callable[..., Any]) -> tuple[list[str], list[Any]]:
    return _read_arguments(MethodType(function, function))


def _arguments(function: Callable[..., Any]) -> tuple[list[str], list[Any]]:
    if not isinstance(function, MethodType):
        return _read_arguments(function)
    names, defaults = _of_method(function.__func__)
    return [*names], [*defaults]


def _is_lasting(function: Callable[..., Any]) -> bool:
    return isinstance(function, FunctionType) and function.__qualname__.isidentifier()


@cache
def _hints_of_function(function: Callable[..., Any]) -> IOTypeHints | None:
    return _read_hints(function)


@cache
def _hints_of_method(function: Callable[..., Any]) -> IOTypeHints | None:
    return _read_hints(MethodType(function, function))


def _hints(function: Callable[..., Any]) -> IOTypeHints | None:
    if isinstance(function, MethodType):
        return _hints_of_method(function.__func__)
    return _hints_of_function(function) if _is_lasting(function) else _read_hints(function)


@cache
def _of_code(function: Callable[..., Any]) -> bool:
    return bool(_read_source(function))


def _yields_and_returns(function: Callable[..., Any]) -> bool:
    if isinstance(function, MethodType):
        return _of_code(function.__func__)
    return _of_code(function) if _is_lasting(function) else bool(_read_source(function))


def _states_and_timers(work: DoFn) -> tuple[set[Any], set[Any]]:
    if isinstance(work, core.CallableWrapperDoFn) and isinstance(work.process, MethodType):
        return _read_specs(work)  # all functions share one class, and Beam reads only methods
    kind = type(work)
    if kind not in _specs:
        _specs[kind] = _read_specs(work)
    states, timers = _specs[kind]
    return {*states}, {*timers}


@cache
def _parsed(kind: type[PipelineOptions], flags: tuple[str, ...]) -> Any:
    return kind([*flags])._visible_options


def _view(self: PipelineOptions, kind: type[PipelineOptions]) -> PipelineOptions:
    if self._flags is None:  # the flags of this process, which are pytest's
        return _view_uncached(self, kind)
    view = object.__new__(kind)
    view._flags, view._visible_options = self._flags, _parsed(kind, tuple(self._flags))
    for name, value in vars(view._visible_options).items():
        if name not in self._all_options:
            self._all_options[name] = deepcopy(value)  # some are lists, which grow
    view._all_options = self._all_options
    return view


def _in_small_blocks(pickled: bytes, *, compresslevel: int) -> bytes:
    return bz2.compress(pickled, 1)


cloudpickle_pickler.bz2 = SimpleNamespace(compress=_in_small_blocks, decompress=bz2.decompress)
core.get_function_args_defaults = _arguments
core._check_fn_use_yield_and_return = _yields_and_returns
statecache.get_deep_size = lambda *_values: 1024
IOTypeHints.from_callable = _hints
IOTypeHints._make_origin = lambda *_bases, **_told: []
userstate.get_dofn_specs = _states_and_timers
PipelineOptions.view_as = _view
