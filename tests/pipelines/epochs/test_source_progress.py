"""`changelog.freshness`: valid settings, and messages about windows that wait for the source."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.epochs.job import timeline_of
from pipelines.epochs.plans import plan_of
from pipelines.epochs.source_progress import complete, source_passed, waits
from pipelines.plan.accuracy import warnings
from pipelines.spec.times import microseconds, parse_time
from tests.pipelines.spec_text import GOOD, changed, loaded, problems
from transforms.sources.freshness import NEVER, Freshness

PATH = "format: parquet\n  path: data/*.parquet"
FROM_TOPIC = "format: jsonl\n  path: kafka://k:9092/t"
SNAPSHOTS = "format: snapshots\n  path: data/%Y-%m-%d.csv\n  entry: stay\n  freshness: newer_file\n"
TOPIC = "{heartbeat: kafka://k:9092/__debezium-heartbeat.hospital}"


def with_rule(rule: str, text: str = GOOD) -> str:
    return changed("  time: at\n", f"  time: at\n  freshness: {rule}\n", text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (with_rule("newest"), "freshness: expected newer_file, {file: PATH} or {heartbeat: TOPIC}, not 'newest'"),
        (with_rule("{file: a, heartbeat: b}"), "freshness: expected newer_file, {file: PATH} or {heartbeat: TOPIC}"),
        (with_rule("{heartbeat: beats}"), "freshness.heartbeat: expected kafka://HOST:PORT/TOPIC"),
        (with_rule("{heartbeat: 'kafka://u:p@k/t'}"), "freshness.heartbeat: no user or password here"),
        (with_rule("{file: out/public/progress}"), "freshness.file: lies inside output.public"),
        (
            changed(PATH, FROM_TOPIC, with_rule("newer_file")),
            "freshness: a topic has no files; use {heartbeat: kafka://HOST:PORT/TOPIC}",
        ),
        (
            changed(PATH, FROM_TOPIC, with_rule("{heartbeat: 'kafka://also.k:9092/t'}")),
            "freshness.heartbeat: a topic of the changelog, whose records are rows",
        ),
        (with_rule("{file: ./data/1.parquet}"), "freshness.file: a file of the changelog, whose records are rows"),
        (
            changed(f"{PATH}\n  entry: stay\n  time: at\n", SNAPSHOTS),
            "freshness: only for changes: a window waits for the snapshot of its end anyway; remove it",
        ),
    ],
    ids=lambda text: "spec" if text.startswith("release") else text[:40],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_refused_in_one_line(text: str, error: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, text)

    assert error in problem, problem


def test_a_release_that_has_begun_may_take_a_rule_or_leave_it(tmp_path: Path) -> None:
    without, rule = loaded(tmp_path, GOOD), loaded(tmp_path, with_rule(TOPIC))

    assert rule.sha256 == without.sha256
    assert rule.changelog.freshness == Freshness(by="heartbeat", path="kafka://k:9092/__debezium-heartbeat.hospital")
    assert (source_passed(without), source_passed(complete(rule))) == (None, None)


def test_waiting_is_reported_with_the_progress_of_the_source_and_never_the_arrival_of_files(tmp_path: Path) -> None:
    spec = loaded(tmp_path, with_rule("newer_file"))
    over, passed = timeline_of(spec, microseconds(parse_time("2026-01-06T00:00:00Z"))), 1767600000 * 10**6
    by_file = replace(spec, changelog=replace(spec.changelog, freshness=Freshness(by="file", path="p")))

    assert waits(spec, over, 5, passed) is None
    by_newest = waits(spec, over, 3, passed) or ""
    assert by_newest.startswith(
        "window 4, which ended at 2026-01-05T00:00:00Z, and 1 more wait for the source: no file of changelog.path was "
        "stored after that; check the source, or"
    )
    assert "2026-01-05T08" not in by_newest
    assert "p reports changes up to 2026-01-05T08:00:00Z; check" in (waits(by_file, over, 4, passed) or "")
    assert "p does not report yet how far the source has come; check" in (waits(by_file, over, 0, NEVER) or "")


def test_a_release_that_advances_by_the_clock_alone_gets_a_warning(tmp_path: Path) -> None:
    goes_on = changed(
        "  until: 2026-02-01T00:00:00Z\n", "  until: 2126-02-01T00:00:00Z\n", changed("every: 1d", "every: 1w")
    )
    goes_on = goes_on.replace("2126-02-01", "2126-01-31")
    plan, told = plan_of(loaded(tmp_path, GOOD)), []
    for text in (goes_on, with_rule("newer_file", goes_on), GOOD):
        spec = loaded(tmp_path, text)
        told.append([said.split(":")[0] for said in warnings(spec, plan, 4, [[] for _ in spec.queries])])

    assert ["changelog.freshness" in said for said in told] == [True, False, False]
