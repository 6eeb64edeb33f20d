"""Separate environments for peers whose packages conflict with those of the project."""

import subprocess
import sys
from pathlib import Path


def python(folder: Path, *, peer: str, pins: Path) -> str | None:
    """Return the interpreter of a peer's environment; install it first if necessary.

    Args:
        folder: of the environment.
        peer: name for messages.
        pins: file of its requirements.

    Returns:
        None if the installation failed; a message names the command.
    """
    program, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists():
        print(f"installing {peer} ...", file=sys.stderr, flush=True)
        pip = [str(program), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "-r", str(pins)]
        for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], pip):
            if subprocess.run(command, check=False).returncode != 0:
                print(f"MISSING: {peer} is left out; `{' '.join(command)}` failed", file=sys.stderr)
                return None
        ready.touch()
    return str(program)
