"""Files that are no spec at all."""

from pathlib import Path

import pytest

from pipelines.spec.document import read_document
from pipelines.spec.load import load
from tests.pipelines.spec_text import problems
from transforms.common.errors import SpecError


def aliases(lines: int, before: str = "[", after: str = "]") -> str:
    """Each line repeats the one before ten times."""
    each = (f"a{n}: &a{n} {before}{', '.join([f'*a{n - 1}'] * 10)}{after}" for n in range(1, lines + 1))
    return "\n".join(["a0: &a0 {x: 1}", *each])


NOT_A_SPEC = [
    ("", "1: the file is empty"),
    ("# only a comment\n", "1: the file is empty"),
    ("- a\n- b\n", "1: expected keys with values"),
    ("just words", "1: expected keys with values"),
    ("release: a\nqueries: [1,\noutput: b", "2: queries: the bracket that opens here is not closed, or a comma"),
    ("release: a\noutput: {public: b]\n", "2: output: the bracket that opens here is not closed"),
    ('release: "a\nqueries: b', "1: release: the quotation mark that opens here is not closed"),
    ("release: a: b\n", "1: release: no key can begin here; write a space after each colon"),
    ("release:a\nqueries: b\n", "2: queries: no key can begin here; write a space after each colon"),
    ("release: a\nqueries\noutput: b\n", "2: a key without a colon"),
    ("release: a\n  output: b\n", "2: output: no key can begin here"),
    ("privacy:\n  unit: a\n epsilon: 1\n", "3: epsilon: indented unlike the lines before it"),
    ("queries:\n  - where: 'a' = b\n", "2: where: text follows a closing quotation mark"),
    ("release: @a\n", "1: release: an unquoted value cannot begin with @"),
    ("release: &\n", "1: release: an unquoted value that begins with & is an anchor"),
    ("release: !a!b c\n", "1: release: an unquoted value that begins with ! is a tag"),
    ('release: "\\d"\n', "1: release: a backslash in double quotes begins an escape"),
    ("queries: - name: a\n", "1: queries: the first `- ` of a list must be on the line after its key"),
    ("release: |a\n", "1: release: an unquoted value that begins with | or > is a block"),
    ("release: ]\n", "1: release: not YAML; check indentation, colons, quotes and brackets here"),
    ("%YAML 1.9\n---\nrelease: a\n", "1: not YAML; check the lines that begin with %"),
    ("release: a\nrelease: b\n", "2: release: the key is given twice; keep one"),
    ("privacy:\n  epsilon: 1\n  epsilon: 2\n", "3: epsilon: the key is given twice; keep one"),
    ("privacy:\n\tepsilon: 1\n", "2: epsilon: a tab where YAML expects spaces"),
    ("release: a\n---\nrelease: b\n", "2: a second document begins here"),
    ("release: a\noutput: *somewhere\n", "2: output: an unquoted value that begins with * is an alias"),
    ("release: a\n1: b\n", "2: a key must be text; put it in quotes"),
    ("release: a\n? [a, b]\n: c\n", "2: a key must be text; put it in quotes"),
    ("release: a\noutput: !!python/object:os.system x\n", "2: expected text, a number, true"),
    ("release: a\noutput: !!binary aGVsbG8=\n", "2: expected text, a number, true"),
    ("release: a\noutput: \x00\n", "2: output: a control character; remove it"),
    ("release: !tag [a]\n", "1: expected text, a number, true"),
    ("release: !!str [a]\n", "1: expected text, a number, true"),
    ("release: !!bool maybe\n", "1: cannot be read as true or false"),
    ("release: a\nprivacy: {epsilon: 0x" + "f" * 6000 + "}\n", "2: cannot be read as a whole number"),
    ('release: "\\ud800"\n', "1: cannot be read as text in UTF-8"),
    ("release: &a {b: *a}\n", "1: nested too deeply"),
    ("release: &a {<<: *a}\n", "1: nested too deeply"),
    ("release: {<<: [1]}\n", "1: expected keys with values to merge"),
    ("release: " + "[" * 40 + "]" * 40, "1: release: nested too deeply"),
    ("release: " + "[" * 20_000, "1: release: nested too deeply"),
    (aliases(10), "1: aliases repeat more than 100,000 values"),
    (aliases(10, "{<<: [", "]}"), "1: aliases repeat more than 100,000 values"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "error"), NOT_A_SPEC, ids=[case[1] for case in NOT_A_SPEC])
def test_an_invalid_spec_is_refused_in_one_line(tmp_path: Path, text: str, error: str) -> None:
    found = problems(tmp_path, text)

    assert len(found) == 1
    assert found[0].startswith(f"spec.yaml:{error}")


def test_a_path_that_is_missing_a_folder_or_not_text_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"release: \xff\xfe")

    with pytest.raises(SpecError, match=r"none\.yaml: no such file; give the path of a spec"):
        load(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        load(tmp_path)
    with pytest.raises(SpecError, match=r"binary\.yaml: not text in UTF-8"):
        load(binary)


def test_words_of_older_yaml_and_times_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("cells: [NO, on, yes, true, 010, 1_000, 1e3, 2013-01-01]\nat: 2013-01-01T00:00:00Z\n")

    document = read_document(path)

    assert document.content == {
        "cells": ["NO", "on", "yes", True, 10, 1000, 1000.0, "2013-01-01"],
        "at": "2013-01-01T00:00:00Z",
    }
    assert {type(value) for value in document.content["cells"]} == {str, bool, int, float}


def test_lists_that_many_queries_share_may_be_aliases(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("cells: &cells [a, b]\nnumbers: &all {x: 1, y: 2}\none: {<<: *all, y: 3, by: *cells}\n")

    document = read_document(path)

    assert document.content["one"] == {"x": 1, "y": 3, "by": ["a", "b"]}
    assert [document.line(("one", key)) for key in "xy"] == [3, 3]


def test_every_key_and_item_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("# a comment\na:\n  - x\n  # another\n  - {b: 1,\n     c: 2}\n")

    document = read_document(path)

    assert document.line(("a",)) == 2
    assert document.line(("a", 0)) == 3
    assert document.line(("a", 1, "b")) == 5
    assert document.line(("a", 1, "c")) == 6
    assert document.line(("a", 1, "missing")) == 5
