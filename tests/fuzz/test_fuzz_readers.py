"""The readers on changed files, the kept corpus, and files that fuzzing found."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import avro
from tests.fuzz.corpus import FORMATS, kept
from tests.fuzz.harness import check
from tests.fuzz.mutations import ODD, mutate
from tests.fuzz.seeds import SEEDS
from tests.searches import TIMES

EXAMPLES = {"csv": 20, "jsonl": 15, "objects": 10, "debezium": 10, "datastream": 10, "avro": 20}


@pytest.mark.parametrize("format_", FORMATS)
def test_good_files_are_read_as_plain_python_reads_them(format_):
    used = [found for data in SEEDS[format_] if (found := check(format_, data)) is not None]

    assert all(found.fault is None or "quotes" in found.fault or "no column" in found.fault for found in used)
    assert len(used[0].rows) >= 3


@pytest.mark.hypothesis  # `make search` selects by this mark
@pytest.mark.parametrize("format_", FORMATS)
def test_no_changed_file_is_read_wrongly_or_in_part(format_):
    @settings(
        max_examples=EXAMPLES[format_] * TIMES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.sampled_from(SEEDS[format_]), st.sampled_from(SEEDS[format_]), st.randoms(use_true_random=False))
    def changed(data, other, choose):
        check(format_, mutate(data, other, choose))

    changed()


def test_no_avro_file_of_other_types_is_read_in_part():
    choose = Random(1)
    used = [check("avro", avro.odd_file(choose)) for _ in range(150)]

    assert sum(bool(found and found.rows) for found in used) >= 10
    assert sum(bool(found and found.fault) for found in used) >= 20


@pytest.mark.parametrize("format_", ["jsonl", "debezium", "csv"])
def test_every_unusual_piece_may_be_a_value(format_):
    value = {"jsonl": b'"after_cost": 2', "debezium": b'"cost": 1.5', "csv": b",1.5,"}[format_]
    good = next(line for line in SEEDS[format_][0].split(b"\n") if value in line)
    new = {piece: b"," + piece + b"," if format_ == "csv" else value.split(b" ")[0] + b" " + piece for piece in ODD}
    lines = [good.replace(value, odd, 1) for odd in new.values()]
    if format_ == "csv":  # a quote can include all following text
        for line in lines:
            check(format_, SEEDS[format_][0].split(b"\n")[0] + b"\n" + line + b"\n")
    else:
        found = check(format_, b"\n".join(lines) + b"\n")
        assert found is not None
        assert len(found.rows) >= 10


@pytest.mark.hypothesis  # `make search` selects by this mark
@pytest.mark.parametrize("format_", FORMATS)
def test_the_kept_corpus_is_read_as_plain_python_reads_it(format_):
    """Reads every fifth file; `make search` reads all."""
    files = sorted(kept(format_).iterdir())

    assert len(files) >= 10
    for file in files[:: 5 if TIMES == 1 else 1]:
        check(format_, file.read_bytes())
