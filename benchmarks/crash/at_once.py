"""A stream, scheduled runs, and every command that reads or compacts, all at once on one release.

    python -m benchmarks.crash.at_once --seconds 300 --prism PROGRAM

The stream runs on Prism and is started again when it ends because a scheduled run was first. A reader finds whole
epochs, and no number ever changes. Each command ends with exit code 0, or reports that another run was first. A second
release has no noise: its sums equal those of one run over all files.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.crash.checks import demand
from benchmarks.crash.setting import document_of, rows_of
from benchmarks.emptied import emptied
from benchmarks.flink.live import EVERY, ROOT, SPEC, Writer, exact_sums

KEY = ("query", "kind", "layer", "node_start", "node_end", "window_start", "window_end", "ward")
LAG = 5
"""Seconds after which all rows of a window have landed."""

OTHERS = "(another run|nothing need be done)"
COMMANDS = (
    ("run",),
    ("compact",),
    ("show", "-o", "shown.csv"),
    ("report", "-o", "report.html"),
    ("ledger", "--json"),
    ("metrics", "--json"),
    ("metrics", "--private", "--json"),
    ("answer", "--json"),
)


@dataclass(slots=True)
class Release:
    folder: Path
    values: dict[tuple[Any, ...], float] = field(default_factory=dict)
    epochs: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        name, *rest = arguments
        command = [sys.executable, "-m", "pipelines", name, str(self.folder / "spec.yaml"), *rest]
        paths = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=self.folder, env=paths, capture_output=True, text=True, check=False)

    def look(self) -> None:
        """Read all numbers that the manifest lists, and check that those that were seen before are unchanged."""
        path = self.folder / "public/manifest.json"
        if not path.exists():
            return
        manifest = document_of(path.read_bytes())
        found: dict[tuple[Any, ...], float] = {}
        try:
            for name, digest in ((n, d) for epoch in manifest["epochs"] for n, d in epoch["files"].items()):
                content = (self.folder / "public" / name).read_bytes()
                demand(
                    hashlib.sha256(content).hexdigest() == digest["sha256"],
                    f"{name}: differs from its digest in the manifest",
                )
                for row in rows_of(content):
                    told = (name.partition("/")[0], *(row.get(column) for column in KEY))
                    demand(told not in found, f"{told} is published twice")
                    found[told] = row["noisy_value"] if "noisy_value" in row else row["value"]
        except FileNotFoundError:  # allowed if compaction has replaced the manifest
            demand(document_of(path.read_bytes()) != manifest, "a file that the manifest lists is missing")
            return
        demand(len(manifest["epochs"]) >= self.epochs, "the manifest has lost an epoch")
        demand(self.values.items() <= found.items(), "a number has changed or is lost")
        self.values, self.epochs = found, len(manifest["epochs"])

    def watch(self) -> None:
        while not self.over.wait(0.3):
            with self.noted():
                self.look()

    def repeat(self, *arguments: str) -> None:
        before: tuple[float, ...] = ()
        while not self.over.wait(random.uniform(0, 2)):
            until = f"--until={datetime.fromtimestamp(time.time() - LAG, UTC):%Y-%m-%dT%H:%M:%SZ}"
            ended = self.command(*arguments, *([until] if arguments == ("run",) else ()))
            self.note(" ".join(arguments), ended)
            if ended.returncode == 0:
                with self.noted():
                    now = _progress(arguments, ended.stdout)
                    demand(now >= before, f"{arguments}: decreased from {before} to {now}")
                    before = now

    def note(self, name: str, ended: Any) -> None:
        lines = [line for line in ended.stderr.splitlines() if not line.startswith("working: ")]
        self.ended[f"{name}: {ended.returncode}"] += 1
        if lines:
            self.said[f"{name}: {lines}"] += 1
        if any("Traceback" in line for line in lines) or ended.returncode not in (0, 1):
            self.broken.append(f"{name}: {ended.returncode}: {ended.stderr}")

    def noted(self) -> Any:
        return _Noted(self.broken)


@dataclass(slots=True)
class _Noted:
    broken: list[str]

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if error is not None:
            self.broken.append(repr(error))
        return True


def _progress(arguments: tuple[str, ...], out: str) -> tuple[float, ...]:
    """Return numbers of a command's output that never decrease."""
    if arguments[0] == "ledger":
        document = json.loads(out)
        return len(document["epochs"]), document["spent"]["epsilon"]
    if arguments[0] == "metrics":
        found = {one["name"]: one["value"] for one in json.loads(out)["metrics"]}
        return tuple(found.get(f"slackwater_{name}_total", 0) for name in ("windows_published", "epochs_published"))
    return ()


def release(folder: Path, epsilon: str, seconds: float, prism: str) -> Release:
    """Run a stream, scheduled runs and all commands on one release at once; return what was seen.

    Args:
        folder: of the release.
        epsilon: of the spec, as text.
        seconds: duration.
        prism: path of the Prism program.

    Raises:
        BrokenError: an invariant does not hold at the end.
    """
    start = datetime.fromtimestamp(int(time.time()) + 2, UTC)
    one = Release(folder)
    writer = Writer(folder)
    text = SPEC.format(folder=folder, start=f"{start:%Y-%m-%dT%H:%M:%SZ}").replace("1.0e12", epsilon)
    (folder / "spec.yaml").write_text(text)
    writer.start()
    demand(one.command("run", "--shards=3").returncode == 0, "the first run failed")
    threads = [threading.Thread(target=one.repeat, args=command) for command in COMMANDS]
    threads.append(threading.Thread(target=one.watch))
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    streams = 0
    while time.monotonic() < end:
        streams += 1
        log = folder / f"stream-{streams}.log"
        with log.open("wb") as file:
            options = ["--streaming", "--poll=1s", f"--lag={LAG}s", "--runner=PrismRunner", f"--prism_location={prism}"]
            stream = subprocess.Popen(
                [sys.executable, "-m", "pipelines", "run", str(folder / "spec.yaml"), *options],
                cwd=ROOT,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        with suppress(subprocess.TimeoutExpired):
            stream.wait(max(0.0, end - time.monotonic()))
        if stream.poll() is None:
            os.killpg(stream.pid, signal.SIGKILL)
            stream.wait()
        else:
            one.note("stream", argparse.Namespace(returncode=stream.returncode, stderr=log.read_text()))
    one.over.set()
    writer.stop()
    for thread in threads:
        thread.join()
    until = f"--until={start + ((datetime.now(UTC) - start) // EVERY) * EVERY:%Y-%m-%dT%H:%M:%SZ}"
    last = one.command("run", until)
    demand(last.returncode == 0, last.stderr)
    one.look()
    if epsilon == "1.0e12":
        other = folder.with_name(f"{folder.name}-whole")
        (other / "data").mkdir(parents=True)
        for path in (folder / "data").glob("*.parquet"):
            (other / "data" / path.name).write_bytes(path.read_bytes())
        (other / "spec.yaml").write_text((folder / "spec.yaml").read_text().replace(str(folder), str(other)))
        whole = Release(other).command("run", until)
        demand(whole.returncode == 0, whole.stderr)
        demand(exact_sums(folder) == exact_sums(other), "sums differ from those of one run over all files")
    print(f"epsilon {epsilon}: {one.epochs} epochs, {len(one.values)} numbers, {streams} streams, {dict(one.ended)}")
    for said, often in one.said.most_common():
        print(f"  {often} times {said}")
    return one


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="duration for each release")
    parser.add_argument("--prism", required=True, help="path of the Prism program")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("out/benchmarks/at-once"),
        help="folder of the releases; it is emptied first",
    )
    arguments = parser.parse_args()
    folder = emptied(arguments.folder.absolute())
    broken = []
    for epsilon in ("1.0", "1.0e12"):
        broken += release(folder / epsilon, epsilon, arguments.seconds, arguments.prism).broken
    print("\n".join(broken), file=sys.stderr)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
