"""What a process does for speed that runs one command and nothing else; each of it is the whole process's."""

import ctypes
import gc
import sys

MEBIBYTE = 2**20

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""As malloc.h numbers them."""

SAMPLED_EVERY = 10
"""Milliseconds."""


def load() -> None:
    """Import the commands, and settle how memory is kept and how stages end."""
    keep_memory()
    sys.meta_path.insert(0, _Needless())
    # Of the million objects that imports make none is garbage: to look for it took as long as all else.
    gc.disable()
    from pipelines import commands  # noqa: F401

    gc.freeze()
    gc.enable()
    end_stages_at_once()


def keep_memory() -> None:
    """Let glibc keep what is freed.

    It hands arrays of some megabytes back to the system, and fetches them anew for the next batch: half of all page
    faults of a run, and a twentieth of its processor time. Its peak is the same.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if tune is not None:
        tune(MMAP_THRESHOLD, 32 * MEBIBYTE)  # the most that is allowed
        tune(TRIM_THRESHOLD, 64 * MEBIBYTE)


def end_stages_at_once() -> None:
    """Let Beam's workers in this process end a stage when it is done.

    They note every 200 ms which step is at work, and wait for that at the end of each stage.
    """
    from apache_beam.runners.worker.statesampler import StateSampler

    StateSampler.__init__.__defaults__ = (SAMPLED_EVERY,)  # of `sampling_period_ms`, which no option sets


class _Needless:
    """Hides libraries that Beam and Arrow load if they are there, for half a second, and that nothing here needs."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in ("bson", "pandas"):
            raise ModuleNotFoundError(name=name)
