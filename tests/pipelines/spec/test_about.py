"""`about` and `output.witness`: texts for readers, and a path; no part of what is frozen."""

from pathlib import Path

import pytest

from pipelines.spec.about import LABEL, PROSE
from tests.pipelines.spec_text import GOOD, changed, loaded
from transforms.common.errors import SpecError


def witnessed(path: str) -> str:
    """Return a spec with a witness."""
    return changed("  private: out/private\n", f"  private: out/private\n  witness: {path}\n", GOOD)


def test_what_is_said_about_a_release_and_its_witness_do_not_change_the_hash(tmp_path: Path) -> None:
    texts = [
        GOOD,
        f"{GOOD}about: {{curator: a house, use: counting}}\n",
        f"{GOOD}about: {{curator: {{name: a house, type: Industry}}, sector: Energy}}\n",
        witnessed("/mnt/other/wards.jsonl"),
    ]
    specs = [loaded(tmp_path, text) for text in texts]

    assert len({spec.sha256 for spec in specs}) == 1
    assert specs[0] != specs[1]
    assert dict(specs[2].about) == {"curator": "a house", "curator_type": "Industry", "sector": "Energy"}
    assert specs[3].output.witness == "/mnt/other/wards.jsonl"


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("about: a house", "about: expected keys with values, not 'a house'"),
        ("about: {curator: 7}", "about.curator: expected a name, or {name: NAME, type: Government}, not 7"),
        ("about: {curator: {name: a}}", "about.curator.type: missing"),
        (
            "about: {curator: {name: a, type: Hospital}}",
            "about.curator.type: expected one of Government, Industry, Nonprofit",
        ),
        ("about: {contact: [a]}", "about.contact: expected text"),
        ("about: {contact: ''}", "about.contact: expected text that is not empty"),
        ("about: {sector: Health}", "about.sector: "),
        ("about: {contakt: a}", "about.contakt: unknown key; did you mean 'contact'?"),
        (f"about: {{region: {'x' * (LABEL + 1)}}}", f"about.region: has {LABEL + 1} characters; at most {LABEL} are"),
        (f"about: {{use: {'x' * (PROSE + 1)}}}", "about.use: has 4,001 characters; at most 4,000 are allowed"),
        ("about: {labels: {bets: Beds}}", "about.labels.bets: expected one of beds, waited, not 'bets'"),
        ("about: {cells: {ward: {c: C}}}", "about.cells.ward.c: expected one of a, b, other, not 'c'"),
        ("about: {labels: {beds: 7}}", "about.labels.beds: expected text"),
        ('about: {use: "a\\u0007b"}', "about.use: holds a control character; remove it"),
    ],
)
def test_wrong_texts_are_refused_in_one_line(tmp_path: Path, about: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        loaded(tmp_path, f"{GOOD}{about}\n")

    (line,) = str(refused.value).splitlines()
    assert message in line


@pytest.mark.parametrize("inside", ["out/public", "out/private/witness"])
def test_a_witness_within_a_folder_of_the_release_is_refused(tmp_path: Path, inside: str) -> None:
    with pytest.raises(SpecError, match=r"output.witness: lies inside p\w+, and would be restored with it"):
        loaded(tmp_path, witnessed(inside))
