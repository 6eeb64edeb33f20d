"""Records through the transform: each is output once, with noisy values only."""

from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from pipelines.epochs.flags import begin_pipeline
from privacy.sanitised.attributes import Category, Curve, Number, Subset
from privacy.sanitised.grid import Grid
from privacy.sanitised.record import Sanitisation
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.sinks import write_table
from transforms.sanitised.columns import source_columns, to_codes, to_columns
from transforms.sanitised.estimated_tables import estimated, joint
from transforms.sanitised.sanitise import AT_ONCE, Sanitise, names_of, sanitised

HALVES = Grid.of(low=0, high=5, step=0.5)
WARD = Category.planned("ward", ["a", "b", "7"], missing="b", epsilon=1.0)
AGE = Number.planned("age", Grid.of(low=18, high=98, step=1), missing=50, epsilon=1.0)
ILLS = Subset.planned("ills", ["x", "y", "z"], at_most=None, epsilon=3.0)
LOAD = Curve.planned("load", ["h0", "h1"], HALVES, missing=None, total=None, metric="mean", epsilon=4.0)
RECORD = Sanitisation(attributes=(WARD, AGE, ILLS, LOAD))

MASKED = pa.ListArray.from_arrays(
    pa.array([0, 2, 3, 4]), pa.array(["x", "y", "z", "x"]), mask=pa.array([False, True, False])
)
"""A null list with elements below it, which do not count."""

ODD = [
    (WARD, [pa.array(["a", "z", None, " a", "7"])], [[0], [1], [1], [1], [2]]),
    (WARD, [pa.array([7.0, 7.5, None])], [[2], [1], [1]]),
    (WARD, [pa.array([b"a", b"\xff"])], [[0], [1]]),
    (WARD, [pa.array([{"a": 1}])], [[1]]),
    (WARD, [pa.array([["a"]])], [[1]]),
    (AGE, [pa.array([20.4, -1e300, float("inf"), float("nan"), None])], [[2], [0], [80], [32], [32]]),
    (AGE, [pa.array(["20", "", "x", "1e9", None])], [[2], [32], [32], [80], [32]]),
    (AGE, [pa.array([True, False])], [[0], [0]]),
    (AGE, [pa.array(["2026-01-01"]).cast(pa.date32())], [[32]]),
    (ILLS, [pa.array(["x; z", "", None, "z;z;q", ";"])], [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]),
    (ILLS, [pa.array([["x", None, "q"], None, ["z", "y"]])], [[1, 0, 0], [0, 0, 0], [0, 1, 1]]),
    (ILLS, [MASKED], [[1, 1, 0], [0, 0, 0], [1, 0, 0]]),
    (ILLS, [pa.array([["x", "z"], None], pa.list_(pa.string(), 2))], [[1, 0, 1], [0, 0, 0]]),
    (LOAD, [pa.array([1.2, None]), pa.array(["3", "x"])], [[2, 6], [0, 0]]),
    *((WARD, [pa.array(["7", None], type_)], [[2], [1]]) for type_ in (pa.string_view(), pa.large_binary())),
]


@pytest.mark.parametrize(
    ("attribute", "columns", "codes"), ODD, ids=[f"{one.name}-{n}" for n, (one, *_) in enumerate(ODD)]
)
def test_every_value_of_a_column_has_a_code(attribute, columns, codes):
    assert to_codes(columns, attribute).tolist() == codes
    assert to_codes([pa.chunked_array([c.slice(0, 1), c.slice(1)]) for c in columns], attribute).tolist() == codes


@pytest.mark.parametrize("attribute", RECORD.attributes, ids=lambda one: one.name)
def test_codes_survive_conversion_to_columns(attribute):
    codes = {"ward": [[0], [2]], "age": [[0], [80]], "ills": [[1, 0, 1], [0, 0, 0]], "load": [[0, 10], [3, 1]]}
    expected = np.array(codes[attribute.name])

    columns = to_columns(expected, attribute)

    assert to_codes(list(columns.values()), attribute).tolist() == expected.tolist()


def people(records: int) -> pa.Table:
    """Return people, half of them in ward a, aged 18 to 98; the values of `secret` are never output."""
    numbers = np.arange(records)
    return pa.table(
        {
            "who": numbers,
            "secret": ["k7f3secret"] * records,
            "ward": pa.array(["a", "b", "a", "7"]).take(pa.array(numbers % 4)),
            "age": 18 + numbers % 81,
            "ills": pa.array(["x;y", "", None, "z"]).take(pa.array(numbers % 4)),
            "h0": np.full(records, 2.0),
            "h1": np.full(records, 4.5),
        }
    )


def test_every_record_is_output_with_the_named_columns_only():
    records = people(50)
    nulls = pa.table({name: pa.nulls(50) for name in records.column_names})

    for given in (records, nulls):
        found = sanitised(given, RECORD)
        assert found.num_rows == 50
        assert found.column_names == source_columns(RECORD) == ["ward", "age", "ills", "h0", "h1"]
        assert found.schema == sanitised(records, RECORD).schema
        assert all(column.null_count == 0 for column in found.columns)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [AT_ONCE, 21])
def test_equal_records_have_independent_noise(at_once, monkeypatch):
    """1,000 ages are all equal with probability far below 1e-100; three of seven codes are added at once."""
    monkeypatch.setattr("transforms.sanitised.sanitise.AT_ONCE", at_once)
    alike = people(1).take(pa.array(np.zeros(1000, dtype=int)))

    found = sanitised(alike, RECORD)["age"].to_pylist()

    assert len(found) == 1000
    assert len(set(found)) > 100


@pytest.mark.slow
def test_a_pipeline_sanitises_each_name_once(tmp_path: Path):
    """All names occur twice, in batches of other types and other times. Each estimate is within 7 deviations: 1e-11."""
    records = people(4000)
    again = records.set_column(0, "who", records["who"].cast(pa.string()))
    again = again.set_column(2, "ward", records["ward"].dictionary_encode())
    batches = [to_bytes(records.slice(start, 500)) for start in range(0, 4000, 500)]
    batches += [to_bytes(again.slice(start, 500)) for start in (0, 1500)]

    with begin_pipeline(["--direct_runner_bundle_repeat=1"]) as pipeline:
        timed = pipeline | beam.Create([*enumerate(batches)]) | beam.MapTuple(lambda at, one: TimestampedValue(one, at))
        out = timed | beam.WindowInto(FixedWindows(1)) | Sanitise(RECORD, entry="who")
        _ = out | beam.combiners.ToList() | beam.Map(_written, str(tmp_path / "out.parquet"))

    found = pq.read_table(tmp_path / "out.parquet")
    assert found.num_rows == 4000
    assert found.column_names == source_columns(RECORD)
    rows = {(row["attribute"], row["value"]): row for row in estimated(found, RECORD).to_pylist()}
    truth = {("ward", "a"): 0.5, ("ward", "7"): 0.25, ("age", None): 58.0, ("ills", "x"): 0.25, ("load", "h1"): 4.5}
    assert all(abs(rows[key]["estimate"] - value) < 7 * rows[key]["stddev"] for key, value in truth.items())
    assert len(rows) == 3 + 1 + 3 + 2


def _written(payloads: list[bytes], path: str) -> None:
    write_table(pa.concat_tables([from_bytes(payload) for payload in payloads]), path)


def test_joint_shares_name_all_combinations():
    other = Category.planned("grade", ["1", "2"], missing="2", epsilon=2.0)
    both = Sanitisation(attributes=(WARD, other))
    records = people(3000).append_column("grade", pa.array(["1", "2"]).take(pa.array(np.arange(3000) % 2)))

    found = joint(sanitised(records, both), [WARD, other]).to_pylist()

    assert [row["value"] for row in found] == ["a 1", "a 2", "b 1", "b 2", "7 1", "7 2"]
    assert sum(row["estimate"] for row in found) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="named twice"):
        joint(records, [WARD, WARD])
    assert abs(found[0]["estimate"] - 0.5) < 7 * found[0]["stddev"]  # fails with probability below 1e-11


def test_a_record_without_a_name_is_refused():
    with pytest.raises(ValueError, match="1 record without a name"):
        names_of(pa.table({"who": ["a", None]}), "who")
