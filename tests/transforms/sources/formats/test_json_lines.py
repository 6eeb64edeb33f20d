"""JSON lines: members, states, and unusable lines."""

import json

import pyarrow as pa
import pytest

from tests.transforms.writing import NOON, NOON_US, dead, look, parts, read, write_jsonl
from transforms.sources.formats import json_lines


def json_layout(path, **changes):
    return look(path, "jsonl", **({"numbers": "x", "others": "w", "before": None} | changes))


def test_json_members_become_columns_and_absent_ones_null(tmp_path):
    lines = [
        {"id": "a", "at": NOON, "after_x": 1, "after_w": "p", "more": [1]},
        {"id": "b", "at": NOON, "after_x": None},
        {"id": "c", "at": NOON, "after_note": 5},
    ]

    assert read(json_layout(write_jsonl(tmp_path / "a.jsonl", lines))) == [
        {"entry": "a", "time": NOON_US, "order.position": 1, "after": True, "after.w": "p", "after.x": 1.0},
        {"entry": "b", "time": NOON_US, "order.position": 2, "after": False, "after.w": None, "after.x": None},
        {"entry": "c", "time": NOON_US, "order.position": 3, "after": True, "after.w": None, "after.x": None},
    ]


def test_json_states_of_members_with_several_types_still_exist(tmp_path):
    lines = [
        {"id": "a", "at": NOON, "after_x": 1, "after_w": "p"},
        {"id": "b", "at": NOON, "after_note": 5},
        {"id": "c", "at": NOON, "after_note": "text"},
        {"id": "d", "at": NOON, "after_note": None},
    ]

    rows = read(json_layout(write_jsonl(tmp_path / "a.jsonl", lines)))

    assert [row["after"] for row in rows] == [True, True, True, False]


NUMBERS = ["1", "1.50", "-0", "1e3", "0.10000000000000000555111", "1096373912123456789", "9" * 30, "true", "false"]


@pytest.mark.slow
@pytest.mark.parametrize("side", [None, "after_", "after"])
def test_numbers_and_truth_values_of_json_keep_their_text_next_to_any_others(tmp_path, side):
    values = [*NUMBERS, '"1.50"', '"true"', '"a \\" b"', '" 1 : 2 , 3 "', "null"]
    states = {None: '"w": %s', "after_": '"after_w": %s', "after": '"after": {"w": %s, "note": [1, {"w": 2.50}]}'}[side]
    lines = [f'{{"id":{number} , "at": "{NOON}", {states % value}}}' for number, value in enumerate(values)]
    expected = [*NUMBERS, "1.50", "true", 'a " b', " 1 : 2 , 3 ", None]
    alone = [tmp_path / f"{number}.jsonl" for number in range(len(values))]
    for path, line in zip(alone, lines, strict=True):
        path.write_text(line)
    (tmp_path / "all.jsonl").write_text("\n".join(lines))

    layouts = [look(path, "jsonl", others="w", before=None, after=side) for path in [tmp_path / "all.jsonl", *alone]]

    assert [row["after.w"] for row in read(layouts[0])] == expected
    assert [row["after.w"] for layout in layouts[1:] for row in read(layout)] == expected
    assert [row["entry"] for row in read(layouts[0])] == [str(number) for number in range(len(values))]


NO_VALUES = """
    {1: 2} | {"id": tru} | {"id": 1.} | {"id": 01} | {"id": +1} | {"id": .5} | {"id": 1 2} | {"id": 1"x"} | {"id" 1}
    {"id": 1, 2 : 3} | {"id": "a} | {"id": "a\\"} | {"id": 0x1F} | {"id": 1e} | {"id": nul} | {"id": "a", true:1}
"""


@pytest.mark.slow
@pytest.mark.parametrize("line", [line.strip() for line in NO_VALUES.replace("\n", "|").split("|") if line.strip()])
def test_an_invalid_word_makes_only_its_line_a_dead_letter(tmp_path, line):
    good = f'{{"id": "a", "at": "{NOON}", "after_x": 1}}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n{line}\n{good}\n")
    layout = look(tmp_path / "a.jsonl", "jsonl", numbers="x", before=None)

    assert len(read(layout)) == 2
    assert dead(layout) == [(2, json_lines.NOT_JSON)]


@pytest.mark.slow
@pytest.mark.few(23)
@pytest.mark.parametrize("name", ["", "a\0b", "~/0", "it's", '"', "\\", "é" * 300, "after_", "x\u2028"])
@pytest.mark.parametrize("value", ["1", "{}"])
@pytest.mark.parametrize("after", [None, "after", "after_"])
def test_a_member_may_have_any_name(tmp_path, name, value, after):
    own, long = json.dumps(name), json.dumps(f"after_{name}")
    said = f'{own}: {value}, {long}: {value}, "after": {{{own}: {value}, "x": 1}}, "after_x": 1, "x": 1'
    (tmp_path / "a.jsonl").write_text(f'{{"id": "a", "at": "{NOON}", {said}}}\n{{"id": "b", "at": "{NOON}"}}\n')
    layout = look(tmp_path / "a.jsonl", "jsonl", numbers="x", before="before_", after=after)

    assert dead(layout) == []
    assert [(row["entry"], row["after"], row["after.x"]) for row in read(layout)] == [
        ("a", True, 1.0),
        ("b", False, None),
    ]


@pytest.mark.parametrize("odd", ['{"a": 1}', "[]", '"x", "after_note": 2', "5", '"\\u0000"', "null"])
@pytest.mark.parametrize("prefix", ["after_", "after"])
def test_the_digest_of_a_state_covers_all_members_and_depends_on_no_other_line(tmp_path, prefix, odd):
    def line(entry, note):
        states = {side: {"x": 1, "note": note} for side in ("before", "after")}
        if prefix == "after":
            return {"id": entry, "at": NOON, **states}
        members = {f"{side}_{name}": value for side, state in states.items() for name, value in state.items()}
        return {"id": entry, "at": NOON} | dict(sorted(members.items(), key=lambda item: item[0], reverse=entry == "c"))

    lines = [json.dumps(line(entry, note)) for entry, note in (("a", 1), ("b", "1"), ("c", 1), ("d", None))]
    strange = json.dumps(line("e", "odd")).replace('"odd"', odd)
    images = []
    for number, text in enumerate(["\n".join(lines), "\n".join([strange, *lines])]):
        (tmp_path / f"{number}.jsonl").write_text(f"{text}\n")
        sides = {"before": prefix.replace("after", "before"), "after": prefix}
        layout = look(tmp_path / f"{number}.jsonl", "jsonl", others="x", **sides)
        (batch,) = (part for part in parts(layout) if not isinstance(part, pa.Table))
        images.append(dict(zip(batch.table["entry"].to_pylist(), batch.table["image.after"].to_pylist(), strict=True)))
        assert batch.table["image.before"].equals(batch.table["image.after"])

    assert images[1] | images[0] == images[1]
    assert images[0]["a"] == images[0]["b"] == images[0]["c"] != images[0]["d"] != 0


def test_objects_in_json_lines_are_states(tmp_path):
    lines = [
        {"id": 1, "at": NOON, "before": None, "after": {"x": 1, "w": "p"}},
        {"id": 1, "at": NOON, "before": {"x": 1, "w": "p"}, "after": {"x": None, "note": 3}},
        {"id": 1, "at": NOON, "before": {}, "after": {"x": None, "w": None, "note": None}},
        {"id": 1, "at": NOON, "before": {"note": {}}, "after": {"note": []}},
    ]

    layout = json_layout(write_jsonl(tmp_path / "a.jsonl", lines), before="before", after="after")

    assert [(row["before"], row["after"], row["after.x"]) for row in read(layout)] == [
        (False, True, 1.0),
        (True, True, None),
        (False, False, None),
        (True, True, None),
    ]


def test_json_lines_that_cannot_be_used_are_dead_letters_with_their_numbers(tmp_path):
    good = f'{{"id": "a", "at": "{NOON}", "after_x": 1, "after_w": "p"}}'
    lines = [
        good,
        "null",  # 2
        "",  # not a row, but a line
        "[1]",  # 4
        good.replace('"p"', '{"p": 5}'),  # 5: not a value
        good.replace("1,", '"many",'),  # 6: not a number
        good + good,  # 7
        good.replace('"a"', '"a", "id": "b"'),  # 8: a member twice
        good.replace('"p"', '"\udcff"'),  # 9: not UTF-8
        good,
        good.replace('"a"', "null"),  # 11: no key
        good.replace("T12:00:00Z", "T12:00:00"),  # 12: no zone
        f"  {good}",  # 13: not at the beginning of the line
        good.replace('"p"', "[" * 10**6 + "]" * 10**6),  # 14: would overflow a parser's stack
        good[:-20],  # 15: cut off
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    layout = json_layout(path)

    assert [row["order.position"] for row in read(layout)] == [1, 10]
    found = dict(dead(layout))
    assert sorted(found) == [2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15]
    assert {found[row] for row in (2, 4, 7, 9, 13, 14, 15)} == {json_lines.NOT_JSON}
    assert found[5] == json_lines.NOT_OF_FORM
    assert found[6] == "column 'after_x': value not understood as double"
    assert found[11] == "column 'id': entry is null"
    assert "without a zone" in found[12]


@pytest.mark.slow
def test_json_row_numbers_hold_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_BLOCK", 200)
    lines = [{"id": f"e{row}", "at": NOON, "after_x": row, "after_w": "p" * (row % 7)} for row in range(1, 301)]
    path = write_jsonl(tmp_path / "a.jsonl", lines)
    path.write_text(path.read_text().replace('{"id": "e150"', '{"id": e150'))
    layout = json_layout(path)

    rows = read(layout)

    assert all(row["entry"] == f"e{row['order.position']}" for row in rows)
    assert len(rows) == 299
    assert [row for row, _ in dead(layout)] == [150]
