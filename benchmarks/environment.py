"""Environments of their own, in which peers are installed that do not go together with the project's packages."""

import subprocess
import sys
from pathlib import Path


def python(folder: Path, *, peer: str, pins: Path) -> str | None:
    """The interpreter of a peer's environment, which is made if need be; None, said aloud, if that fails.

    Args:
        pins: its requirements.
    """
    program, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists():
        print(f"installing {peer} ...", file=sys.stderr, flush=True)
        pip = [str(program), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "-r", str(pins)]
        for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], pip):
            if subprocess.run(command, check=False).returncode != 0:
                print(f"MISSING: {peer}; `{' '.join(command)}` failed. It is left out.", file=sys.stderr)
                return None
        ready.touch()
    return str(program)
