"""Errors of jax-privacy at our settings, computed in a separate environment.

Google's jax-privacy (https://github.com/google-deepmind/jax_privacy) has matrix factorisations for prefix sums: the
square root (Fichtenberger, Henzinger, Upadhyay) and buffered Toeplitz matrices (Dvijotham et al.; McMahan et al.).
`jaxprivacy_peer.py` runs its code. Noise is that of the analytic Gaussian mechanism, which no accountant can improve.
"""

import json
import math
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks import environment
from benchmarks.error.setting import Setting, sigma

PINS = Path(__file__).with_suffix(".txt")
PEER = Path(__file__).with_name("jaxprivacy_peer.py")


def python(folder: Path) -> str | None:
    """Return the interpreter of jax-privacy's environment; None, with a message, if it cannot be installed."""
    return environment.python(folder, peer="jax-privacy", pins=PINS)


def rmse(program: str, settings: Sequence[Setting], strategy: str) -> list[float]:
    """Return root mean square errors, in the order of the settings.

    Args:
        program: interpreter of jax-privacy's environment.
        settings: points of the comparison.
        strategy: "sqrt", or "blt" for a buffered Toeplitz matrix fitted to each setting (half a minute each).
    """
    questions = [
        {
            "strategy": strategy,
            "leaves": setting.leaves,
            "participations": setting.touched,
            "initial_level": setting.initial_level,
            "width": setting.width,
        }
        for setting in settings
    ]
    finished = subprocess.run(
        [program, str(PEER)], input=json.dumps(questions), stdout=subprocess.PIPE, text=True, check=True
    )
    errors: list[float] = json.loads(finished.stdout)
    return [
        sigma(setting.epsilon, setting.delta) * math.sqrt(error)
        for setting, error in zip(settings, errors, strict=True)
    ]
