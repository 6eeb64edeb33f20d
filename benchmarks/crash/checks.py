"""What must hold of a release whenever one looks at it, and what must hold after a run that ended well."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.crash.setting import document_of, rows_of

Files = Mapping[str, bytes]
Told = tuple[Any, ...]
"""What names one published number or node."""

NODE = ("query", "layer", "node_start", "node_end", "ward")
ESTIMATE = ("query", "kind", "window_start", "window_end", "ward")
OWN = ("lock", "failure.txt", "diagnostics/dead_letters.parquet", "diagnostics/read.json", "releases/self.json")
"""Private files beside commits and attempts."""

KEPT = 2
"""Epochs whose attempts stay."""


class BrokenError(Exception):
    """Something that must hold does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a release is.

    Attributes:
        epochs: those of the manifest.
        attempts: ids of those that are there; True for those that hold files of noisy numbers.
    """

    committed: int
    shown: int
    epochs: tuple[dict[str, Any], ...]
    attempts: dict[str, bool]


@dataclass(slots=True)
class Watch:
    """Everything that was ever seen of one release: it must stay so."""

    records: dict[str, bytes] = field(default_factory=dict)
    shown: dict[str, bytes] = field(default_factory=dict)
    nodes: dict[Told, float] = field(default_factory=dict)
    estimates: dict[Told, float] = field(default_factory=dict)
    epochs: tuple[dict[str, Any], ...] = ()

    def look(self, public: Files, private: Files) -> Standing:
        """Hold what is there against all that was there before.

        Raises:
            BrokenError: a record, a file, a node or a number has changed, is lost or is told twice; or something is
                public that is not committed.
        """
        records = {name: content for name, content in private.items() if re.fullmatch(r"commits/\d+\.json", name)}
        demand(_kept(self.records, records), "a commit record has changed or is lost")
        self.records = records
        commits = [document_of(records[name]) for name in sorted(records)]
        committed = {name: digest for commit in commits for name, digest in commit["files"].items()}

        files = {name: content for name, content in public.items() if _is_table(name)}
        demand(_kept(self.shown, files), "a published file has changed or is lost")
        for name in files.keys() - self.shown.keys():
            demand(name in committed, f"{name}: public, but not committed")
            demand(_is(files[name], committed[name]), f"{name}: not what was committed")
            self._add(name, files[name])
        self.shown = files

        epochs = tuple(document_of(public["manifest.json"])["epochs"]) if "manifest.json" in public else ()
        demand(epochs[: len(self.epochs)] == self.epochs, "the manifest has lost an epoch, or tells it otherwise")
        self.epochs = epochs
        demand(len(epochs) <= len(commits), "the manifest tells more than was committed")
        windows = 0
        for number, (commit, epoch) in enumerate(zip(commits, epochs, strict=False), start=1):
            demand(all(epoch[name] == commit[name] for name in epoch), f"epoch {number} is told otherwise")
            demand(epoch["epoch"] == number, f"epoch {number} is missing")
            demand(epoch["released"] == windows < epoch["windows"], f"epoch {number}: windows are lost or told twice")
            demand(epoch["files"].keys() <= files.keys(), f"epoch {number}: its files are not there")
            windows = epoch["windows"]
        for commit in commits[-1:]:  # what the next run starts from
            for name, digest in commit["state"].items():
                content = private.get(f"attempts/{commit['attempt']}/state/{name}", b"")
                demand(_is(content, digest), f"{name}: the state of the last epoch has changed")
        attempts: dict[str, bool] = {}
        for name in private:
            if name.startswith("attempts/"):
                _, id_, rest = name.split("/", 2)
                attempts[id_] = attempts.get(id_, False) or rest.startswith(("nodes/", "estimates/"))
        return Standing(committed=len(commits), shown=len(epochs), epochs=epochs, attempts=attempts)

    def look_at_end(self, public: Files, private: Files, *, windows: int) -> Standing:
        """The same after a run that ended well.

        Args:
            windows: how many have closed.

        Raises:
            BrokenError: a window is not released, the public side holds more than the manifest lists, or something of
                a dead attempt is left.
        """
        standing = self.look(public, private)
        demand(standing.shown == standing.committed, "a committed epoch is not shown")
        demand(standing.epochs[-1]["windows"] == windows, f"of {windows} windows not all are released")
        listed = {name for epoch in standing.epochs for name in epoch["files"]} | {
            "manifest.json",
            "spec.yaml",
            "plan.json",
        }
        demand(public.keys() == listed, f"public, but not listed: {sorted(public.keys() - listed)}")
        last = {epoch["attempt"] for epoch in standing.epochs[-KEPT:]}
        demand(standing.attempts.keys() == last, f"left of dead attempts: {sorted(standing.attempts.keys() - last)}")
        more = {name for name in private if not name.startswith(("attempts/", "commits/"))} - set(OWN)
        demand(not more, f"left on the private side: {sorted(more)}")
        return standing

    def look_at_ledger(self, ledger: Mapping[str, Any]) -> None:
        """
        Raises:
            BrokenError: the ledger tells other epochs than those that are committed, and but for the last published.
        """
        names = ("epoch", "released", "windows", "committed_at")
        commits = [document_of(self.records[name]) for name in sorted(self.records)]
        told = [[epoch[name] for name in names] for epoch in ledger["epochs"]]
        demand(told == [[commit[name] for name in names] for commit in commits], "the ledger is not what is committed")
        demand(len(told) - len(self.epochs) <= 1, "the ledger tells more than is published")

    def _add(self, name: str, content: bytes) -> None:
        key, value, known = (
            (NODE, "noisy_value", self.nodes) if name.startswith("nodes/") else (ESTIMATE, "value", self.estimates)
        )
        for row in rows_of(content):
            told = tuple(row[column] for column in key)
            demand(told not in known, f"{name}: told twice: {told}")
            known[told] = row[value]


def compare(watch: Watch, whole: Watch, truth: Mapping[Told, float] | None) -> None:
    """Hold a finished release against one that was made in a single run.

    Args:
        truth: the exact bounded numbers, of a release almost without noise.

    Raises:
        BrokenError: other numbers or nodes are told, or numbers are off.
    """
    demand(watch.nodes.keys() == whole.nodes.keys(), "other nodes than in one run")
    demand(watch.estimates.keys() == whole.estimates.keys(), "other numbers than in one run")
    if truth is not None:
        demand(watch.estimates.keys() == truth.keys(), "other numbers than asked for")
        worst = max(abs(watch.estimates[told] - truth[told]) for told in truth)
        demand(worst < 0.4, f"a number is off by {worst}")


def demand(holds: bool, what: str) -> None:
    """
    Raises:
        BrokenError: it does not hold.
    """
    if not holds:
        raise BrokenError(what)


def _kept(before: Files, now: Files) -> bool:
    return all(now.get(name) == content for name, content in before.items())


def _is_table(name: str) -> bool:
    """Whether a reader takes it for a file of the release; a draft that is still written is none."""
    return name.startswith(("nodes/", "estimates/")) and not name.rpartition("/")[2].startswith(".")


def _is(content: bytes, digest: Mapping[str, Any]) -> bool:
    return hashlib.sha256(content).hexdigest() == digest["sha256"]
