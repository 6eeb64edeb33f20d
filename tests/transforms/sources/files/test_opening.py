"""Compressed files, and files whose names state another compression."""

import bz2
import gzip
import lzma
import random
from functools import partial

import pyarrow as pa
import pytest

from tests.fuzz.seeds import SEEDS
from tests.transforms.writing import NOON, dead, look, read, write_jsonl
from transforms.common.errors import InputError

HEADER = ["id", "at", "after_x", "after_w"]


def csv_layout(path, **changes):
    return look(path, "csv", **({"numbers": "x", "others": "w", "before": None} | changes))


def json_layout(path, **changes):
    return look(path, "jsonl", **({"numbers": "x", "others": "w", "before": None} | changes))


def test_gzip_is_read_by_its_extension(tmp_path):
    lines = [{"id": "a", "at": NOON, "after_x": 1, "after_w": "p"}]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(f"id,at,after_x,after_w\na,{NOON},1,p\n".encode()))

    assert read(json_layout(write_jsonl(tmp_path / "a.jsonl.gz", lines))) == read(csv_layout(tmp_path / "a.csv.gz"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pack", "ending", "told"),
    [
        (gzip.compress, "", "compressed with gzip, but its name does not say so; add .gz to it"),
        (bz2.compress, "", "compressed with bz2, but its name does not say so; add .bz2 to it"),
        (
            lambda text: pa.compress(text, "zstd", asbytes=True),
            "",
            "compressed with zstd, but its name does not say so;",
        ),
        (lzma.compress, "", "compressed with xz; unpack it, or compress it with gzip, bz2 or zstd"),
        (bytes, ".gz", "name ends with .gz, but it is not compressed with gzip; rename it"),
        (bz2.compress, ".gz", "name ends with .gz, but it is not compressed with gzip; rename it"),
    ],
)
def test_a_file_compressed_in_another_way_than_its_name_states_is_refused(tmp_path, pack, ending, told):
    own = {"time": None, "before": None, "after": None, "numbers": "", "others": "ward"}
    for format_, extension, layout in (
        ("csv", "csv", partial(look, format_="csv", order=("seq",))),
        ("objects", "jsonl", partial(look, format_="jsonl", before="before", after="after")),
        ("debezium", "json", partial(look, format_="debezium", **own)),
        ("datastream", "ndjson", partial(look, format_="datastream", **own)),
        ("avro", "avro", partial(look, format_="datastream", **own)),
    ):
        if not (format_ == "avro" and ending):
            folder = tmp_path / format_
            folder.mkdir()
            (folder / f"b.{extension}{ending}").write_bytes(pack(SEEDS[format_][0]))
            with pytest.raises(InputError) as caught:
                layout(folder / "*")
            assert told in str(caught.value)

            (folder / f"a.{extension}").write_bytes(SEEDS[format_][0])
            letters = dead(layout(folder / "*"))
            assert [reason for row, reason in letters if row is None] == [str(caught.value).split(": ", 1)[1]]


@pytest.mark.parametrize(("name", "inspect"), [("a.csv.gz", csv_layout), ("a.jsonl.gz", json_layout)])
def test_a_truncated_gzip_file_is_dead_as_a_whole(tmp_path, name, inspect):
    word = random.Random(3)
    path = tmp_path / name
    if name.startswith("a.csv"):
        text = "\n".join([",".join(HEADER), *(f"{word.random()},{NOON},1,p" for _ in range(1000))])
    else:
        line = f'"at": "{NOON}", "after_x": 1, "after_w": "p"}}'
        text = "\n".join(f'{{"id": "{word.random()}", {line}' for _ in range(1000))
    path.write_bytes(gzip.compress(text.encode()))
    layout = inspect(path)
    path.write_bytes(path.read_bytes()[:-500])

    assert None in dict(dead(layout))
