"""The gallery: each spec is valid and listed, and one page is made."""

import re
from pathlib import Path

import pytest

from examples.gallery.build import EXAMPLES, SPECS, build
from pipelines.spec.load import load

ROOT = Path(__file__).parents[1]


def test_every_spec_is_valid_and_on_the_page() -> None:
    listed = re.findall(r"^\| `(\w+)\.html` \| \[\1\.yaml\]", (ROOT / "docs/gallery.md").read_text(), re.MULTILINE)

    assert {path.stem for path in SPECS.glob("*.yaml")} == set(EXAMPLES) == set(listed)
    assert len(EXAMPLES) == 5
    for name in EXAMPLES:
        assert load(SPECS / f"{name}.yaml").queries


@pytest.mark.slow
def test_a_page_is_made(tmp_path: Path) -> None:
    page = build("sessions", tmp_path).read_text()

    assert "<h1>Sessions on three servers</h1>" in page
    assert "168 windows of 1 hour" in page
    assert "Protects each session: " in page
    assert "Count of sessions by server." in page
