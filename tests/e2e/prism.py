"""Beam's Prism, built once by Go into a cache outside the project; Go checks what it fetches by its own sums."""

import os
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.programs import needs, where

WITH_GO = needs("go")

UNLISTED = "--experiments=disable_logging_submission_environment"
"""Or else Beam asks pip what is installed, for each pipeline."""


def prism() -> Path:
    """Return the path of Prism, of the same version as the Python side."""
    beam = version("apache-beam")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slackwater"
    program = cache / f"prism-{beam}" / "prism"
    if program.exists():
        return program
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as draft:
        subprocess.run(
            [str(where("go")), "install", f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{beam}"],
            env={**os.environ, "GOBIN": draft, "GOFLAGS": "-mod=mod"},
            check=True,
            capture_output=True,
            timeout=600,
        )
        program.parent.mkdir(exist_ok=True)
        (Path(draft) / "prism").replace(program)
    return program


def flags() -> list[str]:
    """Pipeline options that take it as the runner."""
    return ["--runner=PrismRunner", f"--prism_location={prism()}", UNLISTED]
