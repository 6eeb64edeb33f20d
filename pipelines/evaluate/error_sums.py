"""Sums of squared errors of the numbers of one kind, and their summary."""

from typing import Any

import numpy as np

_ERRORS = ("rmse_observed", "rmse_predicted", "bounding_rmse", "rmse_total")


class ErrorSums:
    """Sums of squared errors over chunks."""

    def __init__(self) -> None:
        self.squares = dict.fromkeys((*_ERRORS, "truth"), 0.0)
        self.numbers = dict.fromkeys(self.squares, 0)
        self.rows = 0
        self.biases = dict.fromkeys(("bias", "bias_last"), 0.0)
        self.biased = dict.fromkeys(self.biases, 0)

    def compare(self, aim: np.ndarray, goal: np.ndarray) -> None:
        """Compare bounded numbers with the exact ones, [numbers, cells]."""
        self.rows += aim.size
        self.add("bounding_rmse", aim - goal)
        self.add("truth", goal)
        for name, off in (("bias", aim - goal), ("bias_last", (aim - goal)[-1:])):
            known = off[~np.isnan(off)]
            self.biases[name] += float(known.sum())
            self.biased[name] += known.size

    def add(self, name: str, errors: np.ndarray) -> None:
        known = errors[~np.isnan(errors)]
        self.squares[name] += float(np.sum(known**2))
        self.numbers[name] += len(known)

    def summary(self) -> dict[str, Any]:
        rmse = {
            name: (total / self.numbers[name]) ** 0.5 if self.numbers[name] else None
            for name, total in self.squares.items()
        }
        total, truth = rmse["rmse_total"], rmse["truth"]
        relative = None if total is None or not truth else total / truth
        biases = {name: total / self.biased[name] if self.biased[name] else None for name, total in self.biases.items()}
        return {**rmse, "rows": self.rows, "relative_error": relative, **biases}
