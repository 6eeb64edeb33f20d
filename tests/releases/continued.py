"""A release of some version goes on under this one: what the program says of it and publishes, but for the noise."""

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
"""Columns with noise in them; for the mean, `squares`, so is its standard deviation."""

ERRORS = ("rmse_observed", "rmse_total", "relative_error")
"""Of `evaluate`, which samples noise of its own."""

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
"""What follows from the release alone, and not from the clock or the machine."""


def unpacked(release: Path, folder: Path) -> Path:
    """The release as its version left it, with the times of its files; `next` holds what the changelog gets later."""
    with tarfile.open(release / "release.tar.gz") as packed:
        packed.extractall(folder, filter="tar")
    return folder


def said(folder: Path, *arguments: str) -> str:
    """What the program prints."""
    printed = io.StringIO()
    with chdir(folder), redirect_stdout(printed):
        code = cli.main(arguments)
    assert code == 0, arguments
    return printed.getvalue()


def document(folder: Path, command: str, *arguments: str) -> Any:
    return json.loads(said(folder, command, "spec.yaml", "--json", *arguments))


def go_on(folder: Path) -> None:
    """The third epoch, from what the first two left and what the changelog got since."""
    for path in sorted((folder / "next").iterdir()):
        path.rename(folder / "data" / path.name)
    said(folder, "run", "spec.yaml", f"--until={UNTIL}")


def expected(folder: Path) -> dict[str, Any]:
    """All that follows from spec, plan, data and epochs; the same whenever and wherever it is made."""
    public = folder / "public"
    manifest = json.loads((public / "manifest.json").read_text())
    attempts = [epoch.pop("attempt") for epoch in manifest["epochs"]]
    for epoch, attempt in zip(manifest["epochs"], attempts, strict=True):
        epoch["files"] = sorted(own_name(name, attempt) for name in epoch["files"])
        del epoch["committed_at"]
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
    """A later version may warn in other words, and of other things."""
    report.pop("warnings", None)
    return report


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
