"""What a process does for speed that runs one command and nothing else; each of it is the whole process's."""

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from types import FunctionType, MethodType
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

MEBIBYTE = 2**20

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""As malloc.h numbers them."""

SAMPLED_EVERY = 10
"""Milliseconds."""

NEEDLESS = ("bson", "pandas", "IPython")
"""What Beam and Arrow import if it is there, for half a second, and nothing here needs."""

BIGQUERY, GOOGLE_FILES = "apache_beam.io.gcp.bigquery", "apache_beam.io.gcp.gcsfilesystem"

DATAFLOW = "google.cloud.dataflow"
"""The service's client; Beam imports all three if they are there."""


def load(imported: Callable[[], T], flags: Sequence[str]) -> T:
    """What imports a command, with Beam's flags for it, and settle how memory is kept and how stages end."""
    sys.meta_path.insert(0, _Hidden(NEEDLESS))
    command = _load(imported, google(flags))
    import_google_files_late()
    return command


def load_worker(imported: Callable[[], T]) -> T:
    """The same for a process that is a worker of Beam's, whose pipelines may be anyone's and need anything."""
    return _load(imported, ())


def _load(imported: Callable[[], T], hidden: Sequence[str]) -> T:
    keep_memory()
    # Of the million objects that imports make none is garbage: to look for it took as long as all else.
    gc.disable()
    with _without(*hidden):
        found = imported()
    gc.freeze()
    gc.enable()
    ask_once()
    end_stages_at_once()
    return found


def keep_memory() -> None:
    """Let glibc keep what is freed.

    It hands arrays of some megabytes back to the system, and fetches them anew for the next batch: half of all page
    faults of a run, and a twentieth of its processor time. Its peak is the same.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if tune is not None:
        tune(MMAP_THRESHOLD, 32 * MEBIBYTE)  # the most that is allowed
        tune(TRIM_THRESHOLD, 64 * MEBIBYTE)


def ask_once() -> None:
    """Let Beam look once at the arguments of a function, and at options.

    While it builds a pipeline it looks at all methods of each step some eight times, and makes a parser for a class of
    options whenever it asks for one of them: together a third of the time of a run that has next to nothing to read.
    """
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.transforms import core

    looked, view_as = core.get_function_args_defaults, PipelineOptions.view_as
    of_function = lru_cache(maxsize=None)(looked)
    views = WeakKeyDictionary[PipelineOptions, dict[type[PipelineOptions], PipelineOptions]]()

    def arguments(method: object) -> tuple[list[str], list[object]]:
        if isinstance(method, MethodType) and isinstance(method.__func__, FunctionType):
            names, defaults = of_function(method.__func__)
            if len(names) > len(defaults):  # else it is not the first of them that is bound
                return names[1:], [*defaults]
        return looked(method)

    def view(options: PipelineOptions, kind: type[PipelineOptions]) -> PipelineOptions:
        known = views.setdefault(options, {})
        if kind not in known:
            known[kind] = view_as(options, kind)  # it has the values of `options`, also those that are set later
        return known[kind]

    core.get_function_args_defaults, PipelineOptions.view_as = arguments, view


def end_stages_at_once() -> None:
    """Let Beam's workers in this process end a stage when it is done.

    They note every 200 ms which step is at work, and wait for that at the end of each stage.
    """
    from apache_beam.runners.worker.statesampler import StateSampler

    StateSampler.__init__.__defaults__ = (SAMPLED_EVERY,)  # of `sampling_period_ms`, which no option sets


def google(flags: Sequence[str]) -> tuple[str, ...]:
    """What a command with these flags does not import of Google's, or not yet.

    >>> DATAFLOW in google([]), DATAFLOW in google(["--runner", "DataflowRunner"])
    (True, False)
    """
    of_all = (BIGQUERY, GOOGLE_FILES)
    return of_all if "dataflow" in " ".join(flags).lower() else (*of_all, DATAFLOW)


def import_google_files_late() -> None:
    """Let Beam import its files of `gs://` when a path is there.

    Google's clients take a tenth of a second to import, and most commands have no such path.
    """
    from apache_beam.io.filesystems import FileSystems

    find = FileSystems.get_filesystem

    def get_filesystem(path: str) -> object:
        if path.startswith("gs://"):
            with suppress(ImportError):  # then Beam says what is missing
                import_module(GOOGLE_FILES)
        return find(path)

    FileSystems.get_filesystem = staticmethod(get_filesystem)


@contextmanager
def _without(*names: str) -> Iterator[None]:
    """Modules are not found as long as this lasts."""
    hidden = _Hidden(names)
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Modules that are not found, as if they were not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in self._names:
            raise ModuleNotFoundError(name=name)
