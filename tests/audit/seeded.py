"""Apply each seeded fault to a copy of the program, and check that the named layer of the audit sees it.

`python -m tests.audit.seeded` tries all faults, in two processes; names of faults try only these.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent
ROOT = Path(__file__).resolve().parents[2]
SPECS = HERE / "specs"
PACKAGES = ("privacy", "transforms", "pipelines", "slackwater")
PROCESSES = 2
TIMEOUT = 600
"""Seconds after which an audit of a fault is ended: some faults make the program hang."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of the program that breaks its claim.

    Attributes:
        name: What is wrong.
        layer: Layer that must see it.
        spec: Name of the spec that is audited, in `specs`.
        file: The changed file.
        old: Text that occurs once in it.
        new: What takes its place; equal to `old` for the unchanged program, which the layer must pass.
    """

    name: str
    layer: str
    spec: str
    file: str
    old: str
    new: str


FAULTS = tuple(Fault(**row) for row in YAML(typ="safe").load(HERE / "faults.yaml"))

CLEAN = tuple(
    Fault(f"no fault, {layer} of {spec}", layer, spec, "privacy/touched.py", "def at_most", "def at_most")
    for layer, spec in (("sensitivity", "owners"), ("noise", "gauss"), ("membership", "span"), ("runs", "units"))
)


@dataclass(frozen=True)
class Caught:
    """Result of one fault.

    Attributes:
        fault: The fault.
        told: What the layer says about it; empty if it does not see the fault.
        seconds: Time that the audit took.
    """

    fault: Fault
    told: str
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the layer sees the fault, and nothing in the unchanged program."""
        return bool(self.told) != (self.fault.old == self.fault.new)


def tried(fault: Fault) -> Caught:
    """Audit a copy of the program with one fault.

    Raises:
        ValueError: The fault's text does not occur exactly once in its file.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="seeded-") as folder:
        copy = Path(folder, "program")
        for name in PACKAGES:
            shutil.copytree(ROOT / name, copy / name)
        patched(copy, fault)
        told = audited(copy, fault.spec, [fault.layer], Path(folder, "result"))
    return Caught(fault, "; ".join(text for layer in told for text in layer["faults"]), time.monotonic() - began)


def patched(root: Path, fault: Fault) -> None:
    """Change the file of a fault under a folder.

    Raises:
        ValueError: The fault's text does not occur exactly once in its file: change the fault with the code.
    """
    path = root / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: {fault.file} has its text {text.count(fault.old)} times, expected once")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")


def audited(copy: Path, spec: str, layers: Sequence[str], result: Path) -> list[dict[str, Any]]:
    """Run layers of a changed program, and return their results.

    Args:
        copy: Folder of the changed program.
        spec: Name of the audited spec.
        layers: Names of the layers.
        result: A new folder for the results.

    Raises:
        RuntimeError: The audit stopped: the program noticed the fault itself, which is not the layer's merit.
    """
    result.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pipelines.audit.attack", str(SPECS / f"{spec}.yaml"), str(result), "seeded"]
    ran = subprocess.run(
        [*command, *layers], cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"the audit stopped: {ran.stderr[-2000:]}")
    found: list[dict[str, Any]] = json.loads((result / "result.json").read_text(encoding="utf-8"))["layers"]
    return found


def main(names: Sequence[str]) -> int:
    """Try all faults, or those of these names; return 1 if any is not caught."""
    chosen = [fault for fault in (*CLEAN, *FAULTS) if not names or fault.name in names]
    with ThreadPoolExecutor(PROCESSES) as workers:
        waiting = {fault.name: workers.submit(tried, fault) for fault in chosen}
        wrong = 0
        for fault in chosen:
            try:
                found = waiting[fault.name].result()
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
                print(f"ERROR   {fault.layer:12} {fault.name}: {error}", flush=True)
                wrong += 1
                continue
            wrong += not found.right
            word = (
                ("caught" if found.told else "MISSED")
                if fault.old != fault.new
                else "clean "
                if found.right
                else "ALARM "
            )
            print(f"{word}  {fault.layer:12} {found.seconds:4.0f} s  {fault.name}: {found.told[:150]}", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} as expected")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
