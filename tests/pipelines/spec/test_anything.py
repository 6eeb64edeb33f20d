"""For all texts, `load` returns a spec, or reports what is wrong and where."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.spec.document import SpecPlace, read_document
from pipelines.spec.load import load
from tests.pipelines.spec_text import GOOD, loaded
from tests.searches import examples
from transforms.common.errors import SpecError

WORDS = ["auto", "count", "other", "1d", "2026-01-01T00:00:00Z", "gs://", "", "\n", "é", "a\0b"]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(WORDS),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def _places(value: Any, place: SpecPlace = ()) -> list[SpecPlace]:
    """Every place in a document, from the top down."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    below = [
        _places(item, (*place, step)) if isinstance(item, dict | list) else [(*place, step)] for step, item in items
    ]
    return [*([place] if place else []), *(one for places in below for one in places)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spec")
    loaded(folder, GOOD)
    return folder


@given(data=st.data(), value=ANYTHING)
@examples(15)
def test_any_value_at_any_place_is_taken_or_refused_in_lines(folder: Path, data: st.DataObject, value: Any) -> None:
    good = folder / "spec.yaml"
    content = copy.deepcopy(read_document(good).content)
    *path, last = data.draw(st.sampled_from(_places(content)))
    parent: Any = content
    for step in path:
        parent = parent[step]
    parent[last] = value
    changed = folder / "changed.yaml"
    text = json.dumps(content).replace("NaN", ".nan").replace("Infinity", ".inf")
    changed.write_text(text, encoding="utf-8")

    try:
        spec = load(changed)
    except SpecError as error:
        for line in str(error).split("\n"):
            assert re.match(r".*changed\.yaml:\d+: \S", line), "a line without its place"
    else:
        assert spec.queries
        assert spec.sha256
