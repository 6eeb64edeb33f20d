"""Apply each seeded fault to a copy of the program, and check that the named layer of the audit sees it.

`python -m tests.audit.seeded` tries all faults, in two processes; names of faults or of layers try only these. At the
end comes, for each layer, a fault that no other layer sees.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent
ROOT = Path(__file__).resolve().parents[2]
SPECS = HERE / "specs"
PACKAGES = ("privacy", "transforms", "pipelines", "slackwater")
PROCESSES = 2
TIMEOUT = 1800
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
        only: Whether all layers run, and the other ones must not see it.
    """

    name: str
    layer: str
    spec: str
    file: str
    old: str
    new: str
    only: bool = False


FAULTS = tuple(Fault(**row) for row in YAML(typ="safe").load(HERE / "faults.yaml"))

CLEAN = tuple(
    Fault(f"no fault, {layer} of {spec}", layer, spec, "privacy/touched.py", "def at_most", "def at_most")
    for layer, spec in (
        ("sensitivity", "owners"),
        ("noise", "gauss"),
        ("decisions", "thresholds"),
        ("discovery", "found"),
        ("runs", "found"),
        ("membership", "span"),
        ("kills", "span"),
        ("power", "gauss"),
        ("rollback", "units"),
        ("published", "classes"),
        ("streams", "within"),
        ("runs", "units"),
        ("devices", "survey"),
        ("devices", "symbols"),
    )
)


@dataclass(frozen=True)
class Caught:
    """Result of one fault.

    Attributes:
        fault: The fault.
        told: What the layer says about it; empty if it does not see the fault.
        others: Other layers that see it.
        seconds: Time that the audit took.
    """

    fault: Fault
    told: str
    others: tuple[str, ...]
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the layer sees the fault, no other layer does that must not, and none sees the unchanged program."""
        return bool(self.told) != (self.fault.old == self.fault.new) and not self.others

    @property
    def word(self) -> str:
        """The result in one word."""
        if self.fault.old == self.fault.new:
            return "clean" if self.right else "ALARM"
        return "MISSED" if not self.told else f"ALSO {', '.join(self.others)}" if self.others else "caught"


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
        found = audited(copy, fault.spec, [] if fault.only else [fault.layer], Path(folder, "result"))
    told = {layer["layer"].removeprefix("whole "): "; ".join(layer["faults"]) for layer in found}
    others = tuple(f"{name} ({text})" for name, text in told.items() if text and name != fault.layer)
    return Caught(fault, told.get(fault.layer, ""), others, time.monotonic() - began)


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
        layers: Names of the layers; none: all, each with less effort.
        result: A new folder for the results.

    Raises:
        RuntimeError: The audit stopped: the program noticed the fault itself, which is not the layer's merit.
    """
    result.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    effort = "seeded" if layers else "alone"
    command = [sys.executable, "-m", "pipelines.audit.attack", str(SPECS / f"{spec}.yaml"), str(result), effort]
    ran = subprocess.run(
        [*command, *layers], cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"the audit stopped: {ran.stderr[-2000:]}")
    found: list[dict[str, Any]] = json.loads((result / "result.json").read_text(encoding="utf-8"))["layers"]
    return found


def main(names: Sequence[str]) -> int:
    """Try all faults, or those of these names or layers; return 1 if any is not caught."""
    chosen = [one for one in (*CLEAN, *FAULTS) if not names or one.name in names or one.layer in names]
    chosen.sort(key=lambda one: not one.only)  # the longest first
    began, wrong, alone = time.monotonic(), 0, dict[str, str]()
    with ThreadPoolExecutor(PROCESSES) as workers:
        waiting = {workers.submit(tried, fault): fault for fault in chosen}
        for done in as_completed(waiting):
            fault = waiting[done]
            try:
                found = done.result()
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
                print(f"ERROR   {fault.layer:12} {fault.name}: {error}", flush=True)
                wrong += 1
                continue
            wrong += not found.right
            if fault.only and found.right:
                alone[fault.layer] = fault.name
            print(
                f"{found.word:7} {fault.layer:12} {found.seconds:4.0f} s  {fault.name}: {found.told[:150]}", flush=True
            )
    print("\nfaults that one layer alone sees:", *(f"  {layer:12} {name}" for layer, name in alone.items()), sep="\n")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(chosen) - wrong} of {len(chosen)} as expected, in {time.monotonic() - began:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
