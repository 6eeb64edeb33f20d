"""Reports through the transforms: each person's reports count once, in any order, with the estimates of the kernels."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.epochs.flags import begin_pipeline
from privacy.local.bound import LocalBound
from privacy.local.candidates import tree
from privacy.local.design import Design
from privacy.local.document import mark
from privacy.local.mutation_space import MutationSpace
from privacy.sanitised.attributes import Category
from privacy.sanitised.record import Sanitisation
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.sinks import WriteTables, write_table
from transforms.local.collect import BLOCK as BLOCK_OF_REPORTS
from transforms.local.collect import Collect, Collection, counted, estimates_table, parts_of
from transforms.local.distinct import COUNTED, Quality
from transforms.local.randomise import BLOCK, CHANGES, Randomise, _split, randomised
from transforms.local.report_tables import SCHEMA, usable
from transforms.sanitised.sanitise import Sanitise

WINDOWS = 4
DESIGN = tree(
    MutationSpace(answers=3), LocalBound(at_most=2), windows=WINDOWS, arity=2, height=2, epsilon=8.0, publish=("level",)
)


def collection(people: int, windows: int = WINDOWS, design: Design = DESIGN) -> Collection:
    return Collection(
        design=design,
        people=people,
        names=("a", "b", "c"),
        publish=("level", "change"),
        start=0,
        every=86_400_000_000,
        windows=windows,
    )


def everybody_comes(people: int) -> pa.Table:
    """Everybody has answer 0 in window 1; every tenth person changes to 2 in window 3."""
    later = np.arange(0, people, 10)
    columns = [
        np.concatenate([np.arange(people), later]),
        np.repeat([1, 3], [people, len(later)]).astype(np.int32),
        np.repeat([0, 2], [people, len(later)]).astype(np.int32),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=CHANGES)


def estimated(of: Collection, tables: list[pa.Table]) -> tuple[pa.Table, Quality]:
    """Return the estimates of the kernels alone."""
    meet: dict[tuple[int, int], list[pa.Table]] = {}
    total: Quality = Counter()
    for table in tables:
        parts, left_out = parts_of(of, table)
        total += left_out
        for place, part in parts:
            meet.setdefault(place, []).append(part)
    tallies = {}
    for (window, _), parts in meet.items():
        found, quality = counted(of.design, window, parts)
        total += quality
        for node, one in found.items():
            tallies[node] = tallies[node] + one if node in tallies else one
    return estimates_table(of, tallies), total


def test_repeated_reports_count_once_and_contradictory_ones_do_not_count() -> None:
    people = 1000
    sent = list(randomised(DESIGN, everybody_comes(people), first=0, people=people))
    alone, none_lost = estimated(collection(people), sent)
    contradicting = sent[0].slice(0, 1).set_column(4, "sign", pc.negate(sent[0]["sign"].slice(0, 1)))
    shuffled = [table.take(np.random.default_rng().permutation(table.num_rows)) for table in sent]

    again, quality = estimated(collection(people), [*shuffled, sent[2], sent[3].slice(5, 7)])
    without, contradictory = estimated(collection(people), [*sent, contradicting])
    expected, _ = estimated(collection(people), [sent[0].slice(1), *sent[1:]])

    assert none_lost == {(COUNTED, ""): sum(table.num_rows for table in sent)}
    value, low, high = (alone[name].to_numpy() for name in ("value", "ci_low", "ci_high"))
    assert (value - low > 1.96 * alone["stddev"].to_numpy()).all()
    np.testing.assert_allclose(value - low, high - value)
    assert again.equals(alone)
    assert quality - none_lost == {("repeated", ""): sent[2].num_rows + 7}
    assert without.equals(expected)
    assert contradictory["contradictory", ""] == 2


def test_rows_that_no_device_sends_are_left_out() -> None:
    table = next(randomised(DESIGN, everybody_comes(10), first=0, people=1000))
    layers = table["layer"].to_numpy()
    assert set(layers.tolist()) == {0}  # a node of the other layer ends with the next window
    for name, values in {
        "person": (-1, 1000, None),
        "window": (-1, WINDOWS, None),
        "layer": (1, 2, None),
        "symbol": (DESIGN.basis.questions, None),
        "sign": (0, 2, None),
    }.items():
        for value in values:
            column = pa.array([value, *table[name].to_pylist()[1:]], table[name].type)
            fits = usable(DESIGN, table.set_column(table.schema.get_field_index(name), name, column), people=1000)
            assert fits.tolist() == [False, *[True] * (table.num_rows - 1)], (name, value)


def test_open_windows_and_missing_reports_leave_numbers_null() -> None:
    sent = list(randomised(DESIGN, everybody_comes(500), first=0, people=500))

    table, _ = estimated(collection(500, windows=3), [sent[0], sent[2], sent[3]])

    assert table.num_rows == 2 * 3 * 3
    levels = table.filter(pc.equal(table["kind"], "level"))
    # Window 2 is made of the node of windows 0 and 1, whose reports are due with window 1.
    assert pc.is_valid(levels["value"]).to_pylist() == [True] * 3 + [False] * 6
    assert levels["stddev"].null_count == 6


def test_reports_are_grouped_by_window_and_block_and_open_windows_wait() -> None:
    """The last person of a block and the first of the next one; no report on an open window counts."""
    people = [BLOCK_OF_REPORTS - 1, BLOCK_OF_REPORTS]
    rows = {"person": people * 2, "window": [1, 1, 3, 3], "layer": [0] * 4, "symbol": [0] * 4, "sign": [1] * 4}
    rows["design"] = [mark(DESIGN)] * 4

    found, left_out = parts_of(collection(BLOCK_OF_REPORTS + 1, windows=3), pa.table(rows, schema=SCHEMA))

    assert [(place, part["person"].to_pylist()) for place, part in found] == [
        ((1, 0), [BLOCK_OF_REPORTS - 1]),
        ((1, 1), [BLOCK_OF_REPORTS]),
    ]
    assert not left_out


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("person", -1, "persons must be numbers from 0 to 9"),
        ("person", 10, "persons must be numbers from 0 to 9"),
        ("window", -1, "windows must be numbers from 0 to 3"),
        ("window", WINDOWS, "windows must be numbers from 0 to 3"),
    ],
)
def test_answers_of_unknown_people_and_windows_are_refused(name: str, value: int, why: str) -> None:
    """Else somebody's device would report another person's answer, or nothing."""
    changes = everybody_comes(10)
    place = changes.schema.get_field_index(name)
    wrong = changes.set_column(place, name, pa.array([value, *changes[name].to_pylist()[1:]], changes[name].type))

    with pytest.raises(ValueError, match=why):
        list(_split(to_bytes(wrong), 10, WINDOWS))
    assert [block for block, _ in _split(to_bytes(changes), 10, WINDOWS)] == [0]


def test_steps_after_sampling_follow_a_reshuffle() -> None:
    """A runner that repeats a later step then repeats no sample: a second one of a device costs its epsilon again."""
    ward = Category.planned("ward", ["a", "b"], missing="b", epsilon=1.0)
    pipeline = beam.Pipeline()
    records = pipeline | beam.Create([b""])
    _ = (
        records | Randomise(DESIGN, people=10, most_epsilon=8.0),
        records | Sanitise(Sanitisation(attributes=(ward,)), entry="who"),
    )

    steps = {step.unique_name: step for step in pipeline.to_runner_api().components.transforms.values()}

    shuffles = {name: list(step.outputs.values()) for name, step in steps.items() if "reshuffle" in step.spec.urn}
    assert shuffles == {
        "Randomise/Once": list(steps["Randomise"].outputs.values()),
        "Sanitise/OneSample": list(steps["Sanitise"].outputs.values()),
    }


def test_a_gateway_refuses_a_design_that_costs_more_than_its_people_agreed_to() -> None:
    with pytest.raises(ValueError, match=r"^epsilon: the design asks for 8; the owner agreed to 7 \(most_epsilon\)"):
        Randomise(DESIGN, people=10, most_epsilon=7.0)


def test_two_answers_of_a_person_on_one_window_are_refused() -> None:
    """The one that counts would depend on the order of rows."""
    twice = pa.concat_tables([everybody_comes(10)] * 2)
    with pytest.raises(ValueError, match="two answers"):
        next(randomised(DESIGN, twice, first=0, people=10))


@pytest.mark.slow
def test_both_transforms_run_on_a_runner(tmp_path: Path) -> None:
    """There are two blocks of people. Each of 24 numbers is within 6 deviations, except with probability 24 * 2e-9."""
    people = BLOCK + 4464
    with begin_pipeline([]) as pipeline:
        (
            pipeline
            | beam.Create([to_bytes(everybody_comes(people))])
            | Randomise(DESIGN, people=people, most_epsilon=8.0)
            | WriteTables(str(tmp_path / "reports"))
        )
    files = sorted((tmp_path / "reports").iterdir())

    def tables() -> Iterator[bytes]:
        for path in [*files, files[0]]:
            yield to_bytes(pa.parquet.read_table(path))

    with begin_pipeline([]) as pipeline:
        found = pipeline | beam.Create(tables()) | Collect(collection(people))
        found["estimates"] | beam.Map(lambda payload: write_table(from_bytes(payload), str(tmp_path / "out.parquet")))
        found["quality"] | beam.Map(lambda quality: (tmp_path / "quality").write_text(str(quality["repeated", ""])))

    table = pa.parquet.read_table(tmp_path / "out.parquet")
    moved = -(-people // 10)
    levels = np.array([[0, 0, 0], [people, 0, 0], [people, 0, 0], [people - moved, 0, moved]])
    truth = np.concatenate([levels.ravel(), np.diff(levels, axis=0, prepend=0).ravel()])
    z = (table["value"].to_numpy() - truth) / table["stddev"].to_numpy()
    assert len(files) == 2 * WINDOWS
    assert (np.abs(z) < 6).all()
    assert int((tmp_path / "quality").read_text()) == pa.parquet.read_table(files[0]).num_rows
