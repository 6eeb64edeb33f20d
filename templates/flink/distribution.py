"""Fetch Flink and Beam's job server once into a cache outside the project, and check their digests.

Flink comes from PyPI (requirements.txt in this folder), the job server from Maven (job-server.xml). A folder gets its
name in the cache only after it is complete and checked.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
POM = HERE / "job-server.xml"
DIGESTS = HERE / "job-server.sha256"


class FlinkError(Exception):
    """A failure with Flink; its text is one line that states what is wrong and what to do."""


def flink_home() -> Path:
    """Return the folder with Flink's `bin`, `conf` and `lib`."""
    return _cached("flink", REQUIREMENTS.read_bytes(), _install_flink) / "pyflink"


def job_server_jars() -> Path:
    """Return the folder with the jars of Beam's job server, including `FlinkJobServerDriver`."""
    return maven_jars("job-server", POM, DIGESTS)


def maven_jars(name: str, pom: Path, digests: Path) -> Path:
    """Return the folder with the jars of a pom, after a check of their digests.

    Args:
        name: of the folder in the cache.
        pom: file for Maven.
        digests: file with a line for each jar: its SHA-256 and its name.

    Raises:
        FlinkError: Maven cannot fetch the jars, or a digest differs.
    """
    return _cached(name, pom.read_bytes() + digests.read_bytes(), lambda target: _copy_jars(target, pom, digests))


def missing() -> str | None:
    """Return a required program that is missing, or None."""
    return next((name for name in ("java", "mvn") if shutil.which(name) is None), None)


def cache() -> Path:
    """Return the folder for everything that clusters of this machine share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slackwater"


def _cached(name: str, asked: bytes, fill: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, filled if it is new; its name holds a digest of `asked`, the versions."""
    folder = cache() / f"{name}-{hashlib.sha256(asked).hexdigest()[:16]}"
    if folder.exists():
        return folder
    cache().mkdir(parents=True, exist_ok=True)
    print(f"flink: fetching {name} into {folder} (once) ...", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=cache()) as draft:
        fill(Path(draft) / name)
        try:
            (Path(draft) / name).rename(folder)
        except OSError:
            if not folder.exists():  # otherwise another process was faster
                raise
    return folder


def _install_flink(target: Path) -> None:
    """Install with pip, which checks the digests."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--require-hashes"]
    _do(*pip, "--no-deps", "--no-compile", "--target", str(target), "-r", str(REQUIREMENTS))


def _copy_jars(target: Path, pom: Path, digests: Path) -> None:
    lacking = missing()
    if lacking is not None:
        raise FlinkError(f"{lacking} is not installed: install Java 11 or 17 and Maven 3")
    maven = ["mvn", "--batch-mode", "--quiet", f"--file={pom}"]
    _do(*maven, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target}")
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in target.iterdir()}
    wanted = {name: digest for digest, name in (line.split() for line in digests.read_text().splitlines())}
    wrong = sorted(name for name in found | wanted if found.get(name) != wanted.get(name))
    if wrong:
        raise FlinkError(
            f"{wrong[0]}: differs from {digests.name}, and so do {len(wrong) - 1} more files; nothing was kept"
        )


def _do(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line.upper()] or [f"exit {done.returncode}"]
        raise FlinkError(f"{Path(command[0]).name} failed: {errors[0]}")
