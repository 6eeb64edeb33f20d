"""Audit the claim of each strategy, policy, way to sum over cells and protection: `python -m tests.audit.claims`.

Specs come from the tables of the program, so a new strategy or policy is audited without a change here, or, if it needs
settings, `SETTINGS` must have them. A test (tests/audit/test_claims.py) fails if a bound, protection, measure or method
of surveys has no claim. The correct program must pass: the lower bound on epsilon or mu never exceeds the claim, and
for pure epsilon it reaches half of it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from privacy.accounting.accounting import COMPOSED
from privacy.adaptive.table import POLICIES
from privacy.cells.table import OFFERS as CELLS
from privacy.strategies.table import OFFERS as STRATEGIES

PROCESSES = 2
DELTA = {"delta": 1e-9, "mechanism": "gaussian"}

SETTINGS: dict[str, Any] = {
    "factorised": "square_root",
    "fixed": {"interval": "4d"},
    "dsft": {"samples": 3, "threshold": 3},
    "dsat": {"samples": 3},
    "pegasus": {"threshold": 3},
}
"""Settings that strategies and policies need."""

PROTECTIONS: dict[str, dict[str, Any]] = {
    "at most 3 changes": {"constraint": {"at_most": 3}},
    "changes within a day": {"constraint": {"within": "1d"}},
    "classes": {"constraint": {"by": "fare", "classes": {"multi": {"at_most": 3}, "pass": {"within": "1d"}}}},
    "owners": {"unit": "nurse", "constraint": {"at_most": 4}},
    "owners with two entries at once": {"unit": "nurse", "constraint": {"at_most": 4, "entries": 2}, **DELTA},
    "a span": {"protects": {"span": "60h"}},
    "a span of owners": {"unit": "nurse", "protects": {"span": "2d"}, "constraint": {"entries": 2}},
    "a span with changes": {"protects": {"span": "60h"}, "constraint": {"at_most": 2}},
    "a distance": {"protects": {"span": "2d", "distance": {"age": 10}}},
    "a distance at all times": {"protects": {"distance": {"age": 10}}},
}
"""Sections `privacy`, for each constraint and protection of the program."""

MEASURES: dict[str, Any] = {
    "count": "count",
    "sum": {"sum": "cost", "min": -5, "max": 100},
    **{name: {name: "cost", "min": 0, "max": 100} for name in ("mean", "second_moment", "variance")},
}

SURVEYS: dict[str, dict[str, Any]] = {
    "mutations": {"constraint": {"at_most": 1}},
    "signs": {"constraint": {"at_most": 3}, "publish": ["level", "change"]},
    "once": {"constraint": {"at_most": 2}},
    "within": {"constraint": {"within": "2d"}},
}
"""Sections `local`: each method, and a bound on time."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A spec whose claim is audited.

    Attributes:
        name: Its purpose.
        privacy: Members of its section `privacy`, without epsilon.
        query: Members of its query, without the name.
        timeline: Number of windows of a day.
    """

    name: str
    privacy: dict[str, Any]
    query: dict[str, Any]
    windows: int = 12

    @property
    def survey(self) -> bool:
        """Whether devices report."""
        return "answers" in self.query

    @property
    def _schedule(self) -> dict[str, str]:
        until = f"2026-01-{1 + self.windows:02d}T00:00:00Z"
        return {"start": "2026-01-01T00:00:00Z", "every": "1d", "until": until}

    def written(self, folder: Path) -> Path:
        """Write the spec into a folder, and return its path."""
        content = (
            {
                "release": "claim",
                "local": {"epsilon": 1.0, **self.query},
                "schedule": self._schedule,
            }
            if self.survey
            else {
                "release": "claim",
                "changelog": {"format": "csv", "path": "data/*.csv", "entry": "id", "time": "at"},
                "privacy": {"epsilon": 1.0, **self.privacy},
                "schedule": self._schedule,
                "queries": [{"name": "beds", **self.query}],
                "output": {"public": "public", "private": "private"},
            }
        )
        path = folder / "spec.yaml"
        with path.open("w", encoding="utf-8") as file:
            YAML(pure=True).dump(content, file)
        return path


WARDS = {"ward": ["a", "b", "other"]}
AGES = {"age": {"from": 0, "to": 40, "step": 5}}
TOWNS = {"x": {"from": 0, "to": 8, "step": 1}, "y": {"from": 0, "to": 8, "step": 1}}
LEVELS = {"measure": "count", "by": WARDS, "publish": ["level"]}
ALL = {"constraint": {"at_most": 3}}
SPAN = {"protects": {"span": "60h"}}


def claims() -> Iterator[Claim]:
    """Yield a spec for each entry of the program's tables; each strategy and policy with both kinds of noise."""
    for name in STRATEGIES:
        strategy = {name: SETTINGS[name]} if name in SETTINGS else name
        numbers = [{"sliding": "3d", "every": "1d"}] if name == "sliding" else ["level"]
        query = {**LEVELS, "publish": numbers, "strategy": strategy}
        yield Claim(f"strategy {name}, Gaussian", {**ALL, **DELTA}, query)
        if name != "factorised":  # only for Gaussian noise
            yield Claim(f"strategy {name}", ALL, query)
            yield Claim(f"strategy {name}, a span", SPAN, query)
    weighted = {**LEVELS, "strategy": {"direct": {"weights": [1, 4, 1, 9]}}}
    yield Claim("strategy direct with weights", {"constraint": {"at_most": 2}}, weighted, windows=4)
    for form in ("none", "subtraction", "bottom_up", "least_squares"):
        tree = {"tree": {"branching": 2, "height": 3, "refine": form}}
        yield Claim(f"strategy tree, refined by {form}", ALL, {**LEVELS, "strategy": tree})
    for name in POLICIES:
        settings = SETTINGS.get(name, {})
        query = {**LEVELS, "strategy": {"adaptive": {"policy": name, **settings}}}
        yield Claim(f"policy {name}", ALL, query)
        yield Claim(f"policy {name}, a span", SPAN, query)
        if not name.startswith("pegasus"):
            yield Claim(f"policy {name}, Gaussian", {**ALL, **DELTA}, query)
    for name in CELLS:
        cells, by = {"strategy": name, "for": "ranges"}, AGES if name not in ("quadtree", "kdtree") else TOWNS
        adaptive = {}
        if name == "kdtree":  # for adaptive queries alone
            cells, adaptive = {"strategy": name}, {"strategy": {"adaptive": {"policy": "fixed", **SETTINGS["fixed"]}}}
        yield Claim(f"cells {name}", SPAN, {**LEVELS, "by": by, "cells": cells, **adaptive})
    yield Claim("marginals", ALL, {**LEVELS, "publish": ["level", {"marginals": [[]]}]})
    for name, privacy in PROTECTIONS.items():
        by = AGES if "distance" in name else WARDS
        publish = ["level"] if "distance" in name else ["level", "entered", "left"]
        yield Claim(f"protection {name}", privacy, {**LEVELS, "by": by, "publish": publish})
    for name, measure in MEASURES.items():
        yield Claim(f"measure {name}", ALL, {"measure": measure, "by": WARDS, "publish": ["change", "level"]})
    for name, section in SURVEYS.items():
        method = {} if name == "within" else {"method": name}
        yield Claim(f"survey {name}", {}, {"answers": ["home", "work"], "people": 100_000, **section, **method})
    owners = PROTECTIONS["owners with two entries at once"]
    yield Claim("measure units", owners, {**LEVELS, "measure": "units"})
    finds = {**LEVELS, "by": {"town": {"discover": True}}}
    laplace = {"delta": 1e-6, "mechanism": "laplace"}
    yield Claim("keys that are found", {**ALL, **laplace}, finds)
    yield Claim("keys that are found, Gaussian", {**ALL, **DELTA}, finds)
    yield Claim("keys that are found, owners", {**owners, **laplace}, {**finds, "measure": "units"})
    yield Claim("keys that are found, a span", {**PROTECTIONS["a span of owners"], **laplace}, finds)
    for name in ("sum", "mean"):
        measure = {**MEASURES[name], "min": 0}
        yield Claim(f"keys that are found by {name}", {**ALL, **laplace}, {**finds, "measure": measure})
    for name in COMPOSED:
        pure = {} if name in ("naive", "advanced", "paper") else DELTA
        delta = {"delta": 1e-9} if name == "advanced" else {}
        yield Claim(
            f"accounting {name}",
            {**ALL, **pure, **delta, "accounting": name},
            {**LEVELS, "publish": ["level", "entered"]},
        )


def audited(claim: Claim) -> dict[str, Any]:
    """Return the result of the audit of a claim: its layers by name, or an error."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="claims-") as folder:
        result = Path(folder, "result")
        result.mkdir()
        command = [
            sys.executable,
            "-m",
            "pipelines.audit.attack",
            str(claim.written(Path(folder))),
            str(result),
            "claims",
        ]
        ran = subprocess.run(
            [*command, "sensitivity", "decisions", "discovery", "membership"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            return {"error": (ran.stderr.strip().splitlines() or ["?"])[-1]}
        document = json.loads((result / "result.json").read_text(encoding="utf-8"))
        return {layer["layer"]: layer for layer in document["layers"]}


def row(claim: Claim, found: dict[str, Any]) -> tuple[str, bool]:
    """Return a line about a claim, and whether the audit passes."""
    if "error" in found:
        return f"| {claim.name} | ERROR {found['error'][:150]} |", False
    faults = [text for layer in found.values() for text in layer["faults"]]
    decisions = found.get("decisions", {}).get("measures", {})
    measures = found["devices" if claim.survey else "membership"]["measures"]
    lower, bound, kind = measures.get("lower", 0.0), measures.get("claim", 1.0), "mu"
    if not DELTA.items() <= claim.privacy.items():
        kind, bound = "epsilon", 1.0
        lower = max(lower, decisions.get("loss", 0.0))
    pure = kind == "epsilon" and "delta" not in claim.privacy
    share = lower / bound if bound else 0.0
    if pure and share < 0.5:
        faults.append("below half of the claim")
    exact = "exact" if pure and decisions.get("loss", 0.0) >= lower > 0 else "99.9 %"
    said = "; ".join(faults) or "passes"
    return (
        f"| {claim.name} | {kind} {bound:.3f} | {lower:.3f} ({exact}) | {share:.2f} | {said} |",
        not faults,
    )


def main(names: Sequence[str]) -> int:
    """Audit all claims, or those whose names contain one of these texts; return 1 if any fails."""
    began = time.monotonic()
    chosen = [claim for claim in claims() if not names or any(name in claim.name for name in names)]
    print("| release | claim | lower bound | of the claim | audit |\n|---|---|---|---|---|")
    wrong = 0
    with ThreadPoolExecutor(PROCESSES) as workers:
        for claim, found in zip(chosen, workers.map(audited, chosen), strict=True):
            text, good = row(claim, found)
            wrong += not good
            print(text if good else f"{text} WRONG", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} as expected, in {time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
