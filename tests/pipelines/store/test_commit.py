"""Records of epochs are read to the letter, and follow on each other."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.store.commit import RELEASE, ReadFile
from pipelines.store.record import Digest, record_json, sealed
from pipelines.store.store import Store
from tests.pipelines.store.releases import DAY, PLAN, record, released
from transforms.common.errors import RefusedError


def test_no_torn_or_altered_record_is_read(tmp_path: Path) -> None:
    content = record_json(released(Store(f"{tmp_path}/public", f"{tmp_path}/private"), 1))
    document = json.loads(content)
    wrong = [content[:size] for size in range(len(content))]
    wrong += [json.dumps({k: v for k, v in document.items() if k != missing}).encode() for missing in document]
    wrong += [json.dumps({**document, key: [[]]}).encode() for key in document]
    changes: list[dict[str, object]] = [
        {"more": 1},
        {"epoch": "1"},
        {"epoch": True},
        {"windows": 2.0},
        {"windows": None},
        {"loss": {**document["loss"], "epsilon": math.nan}},
        {"loss": {**document["loss"], "epsilon": "much"}},
        {"loss": {**document["loss"], "more": 1}},
    ]
    wrong += [json.dumps({**document, **change}).encode() for change in changes]

    for torn in wrong:
        with pytest.raises(RefusedError):
            RELEASE.read(torn, "000001.json")

    assert record_json(RELEASE.read(content, "000001.json")) == content


def test_a_record_is_read_as_it_was_written() -> None:
    written = replace(
        record(7),
        attempt="000007-0123456789abcdef",
        committed_at="2026-01-01T00:00:00+00:00",
        files={"nodes/ä.parquet": Digest("00", 2**40)},
        sources=(ReadFile("a", 1, "x"), ReadFile("b", 2, "y")),
    )

    assert RELEASE.read(record_json(written), "here") == written


def test_a_record_with_another_plan_than_was_committed_is_refused() -> None:
    first = sealed(record(1), None, attempt="a", at="", files={}, state={})
    second = sealed(record(2), first, attempt="b", at="", files={}, state={})

    assert [RELEASE.read(record_json(one), "here") for one in (first, second)] == [first, second]
    for wrong in (replace(first, plan="{}"), replace(first, plan=""), replace(second, plan=PLAN)):
        with pytest.raises(RefusedError, match=r"^here: the plan is not what was committed"):
            RELEASE.read(record_json(wrong), "here")


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": 3},
        {"release": "beds"},
        {"spec_sha256": "0"},
        {"plan_sha256": "0"},
        {"released": 0},
        {"windows": 1},
        {"start": DAY - 1},
        {"until": DAY},
        {"ends": (2 * DAY,)},
    ],
    ids=str,
)
def test_a_record_that_does_not_continue_the_one_before_it_is_refused(changes: dict[str, object]) -> None:
    first = sealed(record(1), None, attempt="a", at="", files={}, state={})
    second = sealed(record(2), first, attempt="b", at="", files={}, state={})

    RELEASE.check([first, second], "commits")
    assert (first.plan, second.plan, second.plan_sha256) == (PLAN, "", first.plan_sha256)
    with pytest.raises(RefusedError, match="commits: epoch 2 does not continue"):
        RELEASE.check([first, replace(second, **changes)], "commits")  # type: ignore[arg-type]
