"""Freshness of a source: valid statements of progress, and statements that end the run."""

import os
from pathlib import Path

import pytest

from transforms.common.errors import InputError
from transforms.sources.files.listing import matching
from transforms.sources.freshness import NEVER, Freshness, said


@pytest.mark.parametrize(
    ("content", "seconds"),
    [
        (b"1970-01-01T00:00:05Z\n", 5),
        (b"1970-01-01 01:00:05+01:00", 5),
        (b"1970-01-01T00:00:01Z\n\n1970-01-01T00:00:07Z\n1970-01-01T00:00:02Z", 7),
        (b'{"ts_ms": 5000}', 5),
        (b'{"schema": {"type": "struct"}, "payload": {"ts_ms": 5000}}', 5),
        # The connector's own time can be later than its position in the log.
        (b'{"before": null, "after": {}, "source": {"ts_ms": 4000}, "ts_ms": 9000}', 4),
        (b'{"payload": {"source": {"ts_us": 4000000, "ts_ms": 4000}, "ts_ms": 9000}}', 4),
        (b'{"ts_ms": 3000}\nnull\n', 3),
    ],
)
def test_an_instant_is_read_as_people_and_as_debezium_write_it(content: bytes, seconds: int) -> None:
    assert said(content, "progress") == seconds * 1_000_000


@pytest.mark.parametrize("content", [b"", b"\n \n", b"null\n"])
def test_a_source_without_statement_has_no_progress(content: bytes) -> None:
    assert said(content, "progress") == NEVER


@pytest.mark.parametrize(
    "content",
    [b"yesterday", b"1970-01-01T00:00:05", b"5000", b"{}", b'{"ts_ms": "5000"}', b'{"ts_ms": true}', b"{", b"\xff",
     b'{"payload": 3}', b'{"source": {}}', b'{"ts_ms": 1767225600500050000}', b"1970-01-01T00:00:05Z\nsoon"],
)  # fmt: skip
def test_an_invalid_instant_ends_the_run_and_is_not_quoted(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^progress: states no time up to which the source has come") as caught:
        said(content, "progress")
    assert "soon" not in str(caught.value)
    assert "5000" not in str(caught.value)


def test_a_later_file_or_instant_is_more_progress(tmp_path: Path) -> None:
    for second, name in ((3, "a.csv"), (5, "b.csv"), (9, "progress")):
        (tmp_path / name).write_text("1970-01-01T00:00:04Z")
        os.utime(tmp_path / name, (second, second))
    files = matching((str(tmp_path / "*.csv"),))

    assert Freshness(by="newer_file").passed(files) == 5_000_000
    assert Freshness(by="newer_file").passed(()) == NEVER
    assert Freshness(by="file", path=str(tmp_path / "progress")).passed(files) == 4_000_000
    assert Freshness(by="file", path=str(tmp_path / "none")).passed(files) == NEVER
