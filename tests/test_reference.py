"""The reference pages agree with the code: `make reference` changes nothing, and every key has a meaning."""

import re

import pytest

from docs.generate import REFERENCE, TODO, commands, generated, pages, sections
from tests.test_readme import name_of


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_generated_tables_agree_with_the_code(page) -> None:
    assert page.read_text() == generated(page.read_text()), "run `make reference`"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_key_and_column_has_a_meaning(page) -> None:
    assert [line for line in page.read_text().splitlines() if TODO in line] == []


@pytest.mark.parametrize(
    ("page", "kind", "names"),
    [
        ("spec.md", "spec", sections()),
        ("commands.md", "command", commands()),
        ("outputs.md", "columns", ("estimates", "nodes")),
    ],
)
def test_every_section_and_command_has_a_table(page, kind, names) -> None:
    found = re.findall(rf"^<!-- {kind}: (.*) -->$", (REFERENCE / page).read_text(), re.MULTILINE)

    assert sorted(found) == sorted(names)


def test_every_command_has_a_heading_and_a_line_in_the_list() -> None:
    text = (REFERENCE / "commands.md").read_text()

    first = {name.split()[0] for name in commands()}
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) == first
    assert set(re.findall(r"^## ([a-z ]+)$", text, re.MULTILINE)) >= set(commands())
