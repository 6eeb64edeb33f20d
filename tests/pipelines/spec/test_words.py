"""Unknown and misspelt keys are refused at every level of a spec."""

import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.spec.words import ALIKE, nearest
from tests.pipelines.spec_text import problems
from tests.searches import examples

# A spec with every level, the place of each level in it, and the keys that are known there.
TEMPLATE = """\
release: wards
{top}changelog:
  format: parquet
  path: data
  entry: stay
  time: at
  {changelog}privacy:
  epsilon: 1.0
  constraint:
    by: fare
    classes:
      multi:
        at_most: 4
        {classes}
    {constraint}
  {privacy}schedule:
  start: 2026-01-01T00:00:00Z
  every: 1d
  {schedule}queries:
  - name: beds
    publish:
      - sliding: 1d
        {publish}
    strategy:
      tree:
        height: 2
        {tree}
    measure:
      mean: waited
      min: 0
      max: 1
      {measure}
    {query}output:
  public: out/public
  private: out/private
  {output}
"""

LEVELS = {
    "top": "release changelog privacy schedule queries strategy output about",
    "changelog": "format path entry time from to before after deleted owner order timezone types nulls bad_rows "
    "expires every shrink kafka freshness",
    "privacy": "unit protects epsilon delta constraint mechanism accounting split adaptive_data states",
    "constraint": "at_most entries within by classes",
    "classes": "at_most entries within",
    "schedule": "start every until timezone",
    "query": "name measure where by publish weight expected consistent strategy cells",
    "publish": "sliding every",
    "tree": "branching height refine",
    "measure": "sum mean second_moment variance min max invalid",
    "output": "public private format bigquery witness latest report",
}
KNOWN = {level: keys.split() for level, keys in LEVELS.items()}


def _spec_with(level: str, key: str) -> tuple[str, int]:
    """The text with an unknown key at one level, and the key's line."""
    lines = []
    for line in TEMPLATE.splitlines():
        for name in KNOWN:
            if f"{{{name}}}" in line:
                indent = line[: line.index("{")]
                if name == level:
                    lines.append(f'{indent}"{key}": 1')
                line = (indent if line.split("}")[1] == "" else "") + line.split("}")[1]
        lines.append(line)
    place = next(i for i, line in enumerate(lines) if line.strip() == f'"{key}": 1')
    return "\n".join(lines), place + 1


def _unknown_key(level: str, key: str) -> str:
    text, line = _spec_with(level, key)
    with tempfile.TemporaryDirectory() as folder:
        found = problems(Path(folder), text)
    assert len(found) == 1, found
    assert found[0].startswith(f"spec.yaml:{line}: ")
    assert f"{key}: unknown key; " in found[0]
    return found[0]


def _slips(key: str) -> set[str]:
    """Return variants of the key, with one typing error each."""
    slips = {key.upper(), f"{key}s"}
    for place in range(len(key)):
        slips |= {key[:place] + key[place + 1 :], key[:place] + key[place : place + 2][::-1] + key[place + 2 :]}
        slips |= {key[:place] + letter + key[place:] for letter in string.ascii_lowercase}
        slips |= {key[:place] + letter + key[place + 1 :] for letter in string.ascii_lowercase}
    return slips


ALMOST_THE_SAME = ({"entry", "every"}, {"order", "owner"})


@pytest.mark.slow
@pytest.mark.parametrize("level", sorted(KNOWN))
def test_a_misspelt_key_is_taken_for_the_one_it_was_meant_to_be(level: str) -> None:
    """Covers every single typing error, in keys of at least five letters."""
    for key in KNOWN[level]:
        for slip in _slips(key) - set(KNOWN[level]) if len(key) > 4 else ():
            meant = nearest(slip, KNOWN[level], alike=ALIKE)
            assert meant == key or {meant, key} in ALMOST_THE_SAME, slip


@given(st.data())
@examples(15)
def test_a_misspelt_key_is_refused_and_a_key_that_it_may_have_been_is_named(data: st.DataObject) -> None:
    level = data.draw(st.sampled_from(sorted(KNOWN)))
    key = data.draw(st.sampled_from([key for key in KNOWN[level] if len(key) > 4]))
    slip = data.draw(st.sampled_from(sorted(_slips(key) - set(KNOWN[level]))))

    error = _unknown_key(level, slip)

    assert f"did you mean {nearest(slip, KNOWN[level], alike=ALIKE)!r}?" in error


@given(st.sampled_from(sorted(KNOWN)), st.text(string.ascii_lowercase + "_", min_size=1, max_size=20))
@examples(8)
def test_any_other_key_is_refused_with_a_known_key_of_its_level(level: str, key: str) -> None:
    if key in KNOWN[level]:
        key = f"{key}_{key}_x"

    error = _unknown_key(level, key)

    named = [known for known in KNOWN[level] if f"did you mean {known!r}?" in error]
    assert named or f"the keys here are {', '.join(KNOWN[level])}" in error


@pytest.mark.parametrize("level", sorted(KNOWN))
def test_a_key_like_no_other_is_answered_with_all_keys_of_the_level(level: str) -> None:
    assert _unknown_key(level, "zzzzz").endswith(f"the keys here are {', '.join(KNOWN[level])}")
