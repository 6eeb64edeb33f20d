"""All ways to account for noise, each with its kind of noise and a delta."""

from privacy.noise.kinds import Accounting, Mechanism

ACCOUNTINGS: list[tuple[Mechanism, Accounting, float]] = [
    ("laplace", "naive", 0.0),
    ("laplace", "paper", 0.0),
    ("laplace", "advanced", 1e-6),
    ("laplace", "zcdp", 1e-6),
    ("laplace", "rdp", 1e-6),
    ("laplace", "pld", 1e-6),
    ("gaussian", "naive", 1e-6),
    ("gaussian", "advanced", 1e-6),
    ("gaussian", "zcdp", 1e-6),
    ("gaussian", "rdp", 1e-6),
    ("gaussian", "pld", 1e-6),
    ("gaussian", "paper", 1e-6),
]
