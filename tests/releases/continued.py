"""Continue a release of an earlier version, and collect the program's output and published values without noise."""

import csv
import io
import json
import tarfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from pipelines import cli
from pipelines.store.attempt import own_name

UNTIL = "2026-01-08T00:00:00Z"
"""The end of the third epoch."""

SAMPLED = ("noisy_value", "value", "ci_low", "ci_high")
"""Columns with noise. The standard deviation of the mean `squares` has noise too."""

ERRORS = ("rmse_observed", "rmse_total", "relative_error")
"""Errors that `evaluate` computes from fresh noise."""

METRICS = (
    "windows_published_total",
    "window_seconds",
    "published_until_timestamp_seconds",
    "epochs_published_total",
    "epochs_unpublished",
    "epsilon_allowed",
    "epsilon_spent",
    "delta_allowed",
    "delta_spent",
)
"""Metrics that depend on the release alone, and not on the clock or the machine."""


def unpacked(release: Path, folder: Path) -> Path:
    """Unpack a release as its version left it, with the files' times; `next` holds later files of the changelog."""
    with tarfile.open(release / "release.tar.gz") as packed:
        packed.extractall(folder, filter="tar")
    return folder


def said(folder: Path, *arguments: str) -> str:
    """Run the program in a folder, and return its output."""
    printed = io.StringIO()
    with chdir(folder), redirect_stdout(printed):
        code = cli.main(arguments)
    assert code == 0, arguments
    return printed.getvalue()


def document(folder: Path, command: str, *arguments: str) -> Any:
    return json.loads(said(folder, command, "spec.yaml", "--json", *arguments))


def run_third_epoch(folder: Path) -> None:
    """Run the third epoch, from the state of the first two and the later files of the changelog."""
    for path in sorted((folder / "next").iterdir()):
        path.rename(folder / "data" / path.name)
    said(folder, "run", "spec.yaml", f"--until={UNTIL}")


def expected(folder: Path) -> dict[str, Any]:
    """Return the values that depend only on spec, plan, data and epochs, and not on time, machine or version."""
    public = folder / "public"
    manifest = json.loads((public / "manifest.json").read_text())
    attempts = [epoch.pop("attempt") for epoch in manifest["epochs"]]
    for epoch, attempt in zip(manifest["epochs"], attempts, strict=True):
        epoch["files"] = sorted(own_name(name, attempt) for name in epoch["files"])
        del epoch["committed_at"]
        for stated in ("program", "sampler"):
            epoch.pop(stated, None)
    manifest.pop("disclosure", None)
    ledger = document(folder, "ledger")
    for epoch in ledger["epochs"]:
        del epoch["committed_at"]
    evaluated = document(folder, "evaluate", "--runs=1", f"--until={UNTIL}", "--truth=private/truth.parquet")
    for numbers in (number for query in evaluated["queries"] for number in query["numbers"]):
        for error in ERRORS:
            numbers.pop(error, None)
    metrics = document(folder, "metrics")["metrics"]
    last = folder / "private/attempts" / attempts[-1] / "state"
    return {
        "manifest": manifest,
        "plan": without_advice(document(folder, "plan")),
        "ledger": ledger,
        "metrics": {m["name"]: m["value"] for m in metrics if m["name"].removeprefix("slackwater_") in METRICS},
        "evaluate": without_advice(evaluated),
        "tables": {
            own_name(path.relative_to(public).as_posix(), attempts[-1]): [
                " ".join(
                    f"{column}={text}"
                    for column, text in row.items()
                    if column not in SAMPLED and (column, row["query"]) != ("stddev", "squares")
                )
                for row in rows_of(path)
            ]
            for path in sorted(public.glob(f"*/*-{attempts[-1]}.csv"))
        },
        "state": sorted(path.name for path in last.iterdir()),
        "settled": json.loads((last / "settled.json").read_text()),
    }


def without_advice(report: Any) -> Any:
    """Return the report without warnings, since a later version may change them."""
    report.pop("warnings", None)
    return report


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
