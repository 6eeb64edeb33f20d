"""Changes of Beam and of the interpreter in a process that runs one command, so that the command starts faster.

Each change saves more than 5 % of the processor time of a nightly run, or a wait
(docs/decisions/start-of-a-command.md). Beam is changed only in the version for which the changes were measured and
tested.
"""

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import version
from types import FunctionType, MethodType, ModuleType
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

BEAM = "2.77.0"
"""The version of Beam that is changed; other versions run unchanged."""

NEEDLESS = ("bson", "pandas", "IPython")
"""Modules that Beam and Arrow import if they are installed, in half a second, and that are not needed here."""

BIGQUERY, GOOGLE_FILES = "apache_beam.io.gcp.bigquery", "apache_beam.io.gcp.gcsfilesystem"

DATAFLOW = "google.cloud.dataflow"
"""The client of the service; Beam imports it if it is installed."""

LATE = {
    "beartype.door": ("is_subhint",),
    "beartype.roar": ("BeartypeDoorException",),
    "cryptography.fernet": ("Fernet",),
    "apache_beam.internal.http_client": ("get_new_http",),
}
"""Modules that Beam imports for steps that few pipelines have, with the names that it takes from them."""

LATE_USERS = (
    "apache_beam.typehints.typehints",
    "apache_beam.transforms.util",
    "apache_beam.runners.portability.stager",
)
"""Modules of Beam that import `LATE`."""


SAMPLED_EVERY = 10
"""Milliseconds between records of the active step of a stage."""

MEBIBYTE = 2**20
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Numbers of these parameters in <malloc.h> of glibc."""


def load(imported: Callable[[], T], flags: Sequence[str]) -> T:
    """Import a command for a process that runs nothing else.

    Args:
        imported: Imports the command and returns it.
        flags: Beam's flags for the command.
    """
    keep_memory()
    sys.meta_path.insert(0, _Hidden(NEEDLESS))
    if version("apache-beam") != BEAM:
        return _without_collection(imported)
    with _without(*google(flags)), _late():
        command = load_worker(imported)
    import_google_files_late()
    return command


def load_worker(imported: Callable[[], T]) -> T:
    """Import the program of a Beam worker. Its pipelines may need any module, so none is hidden."""
    found = _without_collection(imported)
    if version("apache-beam") == BEAM:
        ask_once()
        end_stages_soon()
    return found


def _without_collection(imported: Callable[[], T]) -> T:
    """Import without garbage collection: imports make a million objects, and none is garbage."""
    gc.disable()
    found = imported()
    gc.freeze()
    gc.enable()
    return found


def keep_memory() -> None:
    """Let glibc keep the memory of arrays that are freed, for the next batch or shard.

    It returns arrays of some megabytes to the system by rules that follow the sizes freed so far; the system then has
    to clear their pages again. Peak memory does not change: the next arrays are as large.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if tune is not None:
        tune(MMAP_THRESHOLD, 32 * MEBIBYTE)  # the most that is allowed
        tune(TRIM_THRESHOLD, 256 * MEBIBYTE)


def ask_once() -> None:
    """Let Beam inspect the arguments of a function, and a class of options, only once.

    While Beam builds a pipeline, it inspects all methods of each step about eight times. It also makes a parser for a
    class of options whenever it reads an option.
    """
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.transforms import core

    looked, view_as = core.get_function_args_defaults, PipelineOptions.view_as
    of_function = lru_cache(maxsize=None)(looked)
    views = WeakKeyDictionary[PipelineOptions, dict[type[PipelineOptions], PipelineOptions]]()

    def arguments(method: object) -> tuple[list[str], list[object]]:
        if isinstance(method, MethodType) and isinstance(method.__func__, FunctionType):
            names, defaults = of_function(method.__func__)
            if len(names) > len(defaults):  # otherwise the bound argument is not the first one
                return names[1:], [*defaults]
        return looked(method)

    def view(options: PipelineOptions, kind: type[PipelineOptions]) -> PipelineOptions:
        known = views.setdefault(options, {})
        if kind not in known:
            known[kind] = view_as(options, kind)  # it has the values of `options`, also those that are set later
        return known[kind]

    core.get_function_args_defaults, PipelineOptions.view_as = arguments, view


def end_stages_soon() -> None:
    """Let a stage of Beam end within `SAMPLED_EVERY`.

    A thread records which step is active. It sleeps for up to 200 ms in a long stage, which waits for it at its end.
    """
    from apache_beam.runners.worker.statesampler import StateSampler

    StateSampler.__init__.__defaults__ = (SAMPLED_EVERY,)  # of `sampling_period_ms`, which no option sets


def google(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the names of Google's modules that a command with these flags does not import, or not yet.

    >>> DATAFLOW in google([]), DATAFLOW in google(["--runner", "DataflowRunner"])
    (True, False)
    """
    of_all = (BIGQUERY, GOOGLE_FILES)
    return of_all if "dataflow" in " ".join(flags).lower() else (*of_all, DATAFLOW)


def import_google_files_late() -> None:
    """Let Beam import its files of `gs://` when the first such path comes.

    Google's clients take a tenth of a second to import, and most commands have no such path.
    """
    from apache_beam.io.filesystems import FileSystems

    find = FileSystems.get_filesystem

    def get_filesystem(path: str) -> object:
        if path.startswith("gs://"):
            with suppress(ImportError):  # then Beam reports what is missing
                import_module(GOOGLE_FILES)
        return find(path)

    FileSystems.get_filesystem = staticmethod(get_filesystem)


@contextmanager
def _without(*names: str) -> Iterator[None]:
    """Hide modules within the context."""
    hidden = _Hidden(names)
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)


@contextmanager
def _late() -> Iterator[None]:
    """Let Beam import `LATE` within the context as functions that import the real modules when one of them is called.

    They import 340 modules, a fifth of all.
    """
    late = [name for name in LATE if name not in sys.modules]
    for name in late:
        module = sys.modules[name] = ModuleType(name)
        for attribute in LATE[name]:
            setattr(module, attribute, partial(_now, attribute))
    try:
        yield
    finally:
        for name in late:
            del sys.modules[name]


def _now(called: str, *arguments: object) -> object:
    """Give Beam what it takes from `LATE`, and call one of these functions."""
    real = {late: getattr(import_module(module), late) for module, taken in LATE.items() for late in taken}
    for user in map(import_module, LATE_USERS):
        for late in real.keys() & vars(user).keys():
            setattr(user, late, real[late])
    return real[called](*arguments)


class _Hidden:
    """Import finder that hides modules, as if they were not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in self._names:
            raise ModuleNotFoundError(name=name)
