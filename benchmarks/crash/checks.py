"""Invariants of a release at any time, and after a successful run."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.crash.setting import document_of, rows_of

Files = Mapping[str, bytes]
Told = tuple[Any, ...]
"""Key of one published number or node."""

NODE = ("query", "layer", "node_start", "node_end", "ward")
ESTIMATE = ("query", "kind", "window_start", "window_end", "ward")
OWN = ("lock", "failure.txt", "diagnostics/dead_letters.parquet", "diagnostics/read.json", "releases/self.json")
"""Private files besides commits and attempts."""

KEPT = 2
"""Number of last epochs whose attempts are kept."""


class BrokenError(Exception):
    """An invariant does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Progress of a release.

    Attributes:
        committed: number of committed epochs.
        shown: number of epochs in the manifest.
        epochs: of the manifest.
        attempts: existing attempts by id; True if the attempt holds files of noisy numbers.
    """

    committed: int
    shown: int
    epochs: tuple[dict[str, Any], ...]
    attempts: dict[str, bool]


@dataclass(slots=True)
class Watch:
    """Everything that was ever seen of one release, which must not change."""

    records: dict[str, bytes] = field(default_factory=dict)
    shown: dict[str, bytes] = field(default_factory=dict)
    nodes: dict[Told, float] = field(default_factory=dict)
    estimates: dict[Told, float] = field(default_factory=dict)
    epochs: tuple[dict[str, Any], ...] = ()

    def look(self, public: Files, private: Files) -> Standing:
        """Compare the files with everything that was seen before.

        Args:
            public: contents of the public side, by path.
            private: contents of the private side, by path.

        Raises:
            BrokenError: a record, a file, a node or a number has changed, is lost or is published twice; or something
                public is not committed.
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
            demand(_is(files[name], committed[name]), f"{name}: differs from its committed digest")
            self._add(name, files[name])
        self.shown = files

        epochs = tuple(document_of(public["manifest.json"])["epochs"]) if "manifest.json" in public else ()
        demand(epochs[: len(self.epochs)] == self.epochs, "the manifest has lost an epoch, or changed it")
        self.epochs = epochs
        demand(len(epochs) <= len(commits), "the manifest has more epochs than are committed")
        windows = 0
        for number, (commit, epoch) in enumerate(zip(commits, epochs, strict=False), start=1):
            demand(all(epoch[name] == commit[name] for name in epoch), f"epoch {number} differs from its commit")
            demand(epoch["epoch"] == number, f"epoch {number} is missing")
            demand(
                epoch["released"] == windows < epoch["windows"], f"epoch {number}: windows are lost or published twice"
            )
            demand(epoch["files"].keys() <= files.keys(), f"epoch {number}: its files are missing")
            windows = epoch["windows"]
        for commit in commits[-1:]:  # the next run starts from the last commit
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
        """Check the invariants after a successful run.

        Args:
            public: contents of the public side, by path.
            private: contents of the private side, by path.
            windows: number of closed windows.

        Raises:
            BrokenError: as `look`; or a window is not released, the public side holds more than the manifest lists, or
                files of a dead attempt are left.
        """
        standing = self.look(public, private)
        demand(standing.shown == standing.committed, "a committed epoch is not shown")
        demand(standing.epochs[-1]["windows"] == windows, f"not all of {windows} windows are released")
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
        """Compare the epochs of the ledger with the commits.

        Raises:
            BrokenError: the epochs differ from the commits, or more than one of them is not published.
        """
        names = ("epoch", "released", "windows", "committed_at")
        commits = [document_of(self.records[name]) for name in sorted(self.records)]
        told = [[epoch[name] for name in names] for epoch in ledger["epochs"]]
        demand(told == [[commit[name] for name in names] for commit in commits], "the ledger differs from the commits")
        demand(len(told) - len(self.epochs) <= 1, "the ledger has more than one unpublished epoch")

    def _add(self, name: str, content: bytes) -> None:
        key, value, known = (
            (NODE, "noisy_value", self.nodes) if name.startswith("nodes/") else (ESTIMATE, "value", self.estimates)
        )
        for row in rows_of(content):
            told = tuple(row[column] for column in key)
            demand(told not in known, f"{name}: {told} is published twice")
            known[told] = row[value]


def compare(watch: Watch, whole: Watch, truth: Mapping[Told, float] | None) -> None:
    """Compare a finished release with one that was made in a single run.

    Args:
        watch: of the finished release.
        whole: of the release in a single run.
        truth: exact bounded numbers for a release with hardly any noise; None for others.

    Raises:
        BrokenError: the published numbers or nodes differ in their keys, or numbers differ from the truth.
    """
    demand(watch.nodes.keys() == whole.nodes.keys(), "nodes differ from those of one run")
    demand(watch.estimates.keys() == whole.estimates.keys(), "numbers differ from those of one run")
    if truth is not None:
        demand(watch.estimates.keys() == truth.keys(), "numbers differ from those of the spec")
        worst = max(abs(watch.estimates[told] - truth[told]) for told in truth)
        demand(worst < 0.4, f"a number has an error of {worst}")


def demand(holds: bool, what: str) -> None:
    """Raise `BrokenError` with the text `what` unless the condition holds."""
    if not holds:
        raise BrokenError(what)


def _kept(before: Files, now: Files) -> bool:
    return all(now.get(name) == content for name, content in before.items())


def _is_table(name: str) -> bool:
    """Return whether a path is a file of published numbers, and not a draft that is still being written."""
    return name.startswith(("nodes/", "estimates/")) and not name.rpartition("/")[2].startswith(".")


def _is(content: bytes, digest: Mapping[str, Any]) -> bool:
    return hashlib.sha256(content).hexdigest() == str(digest["sha256"])
