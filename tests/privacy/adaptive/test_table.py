"""A policy is a separate file, two entries of tables and keys of the spec's model: no other code names it.

The tables are that of the planner and that of the audit.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from privacy.adaptive.base import AdaptiveTerms, Period, Publication, Rule, check_samples
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.step import Sampled
from privacy.adaptive.table import POLICIES, RULES
from privacy.columns import Column
from privacy.noise.kinds import Mechanism
from privacy.problems import RuleError
from tests.e2e.specs import CommandLine, changelog, published, write, write_spec
from tests.test_house import PACKAGES, ROOT, modules, syntax


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first windows are sampled, and all others repeat them."""

    name: ClassVar[str] = "first"
    missing: ClassVar[Mapping[str, str]] = {"samples": "how many windows; add samples: 2"}
    columns: ClassVar[tuple[Column, ...]] = ()
    samples: int

    def settled(self, terms: AdaptiveTerms) -> Rule:
        check_samples(self.samples, terms.period)
        return FirstRule(period=terms.period, samples=self.samples)

    def problems(self, cells: int, *, over: bool) -> Iterator[RuleError]:
        if cells > 9:
            yield RuleError("first is for 9 cells at most; take fewer")

    def sentence(self, length: Callable[[int], str]) -> str:
        return f"Only the first {length(self.samples)} have new numbers."


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRule:
    name: ClassVar[str] = "first"
    pure: ClassVar[bool] = False
    fewest: ClassVar[int] = 1
    decisions: ClassVar[None] = None
    period: Period
    samples: int

    @property
    def units(self) -> int:
        return self.samples

    @property
    def publication(self) -> Publication:
        return Sampled(self)

    def runs(self, *, fresh: bool) -> None:
        return None

    def wanted(self, carry: AdaptiveCarry | None, left: int) -> int:
        return int(carry is None or carry.windows < self.samples)

    def settings(self, grid: float, noise: Mechanism) -> dict[str, Any]:
        return {**self.period.settings, "samples": self.samples}


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setitem(POLICIES, "first", First)
    monkeypatch.setitem(RULES, "first", FirstRule)
    (tmp_path / "data").mkdir()
    return CommandLine(tmp_path, capsys)


def specified(folder: Path, settings: str) -> None:
    adaptive = f"publish: [level]\n    strategy: {{adaptive: {{policy: first{settings}}}}}"
    write_spec(folder, ("publish: [level, change]", adaptive))


@pytest.mark.slow
def test_a_policy_in_the_table_is_planned_and_released_from_a_spec(slackwater: CommandLine) -> None:
    specified(slackwater.folder, ", samples: 2")
    write(slackwater.folder / "data/all.parquet", changelog())

    plan = json.loads(slackwater("plan", "spec.yaml", "--json").out)
    (candidate,) = plan["queries"][0]["candidates"]
    assert (candidate["strategy"], candidate["parameters"]) == ("adaptive first", {"windows": 5, "samples": 2})
    assert candidate["numbers"][0]["stddev_first"] == pytest.approx(2 * 2**0.5, rel=0.02)  # scale 2: of 2 samples

    for until in ("2026-01-04T00:00:00Z", "2026-01-06T00:00:00Z"):
        ran = slackwater("run", "spec.yaml", f"--until={until}")
        assert ran.code == 0, ran.err
    rows = published(slackwater.folder, "estimates").sort_by([("window_end", "ascending"), ("ward", "ascending")])
    assert rows["sampled"].to_pylist() == [True] * 6 + [False] * 9
    values = rows["value"].to_pylist()
    assert values[3:6] == values[6:9] == values[9:12] == values[12:]
    page = slackwater("report", "public", "-o", "page.html")
    assert page.code == 0, page.err
    assert "Only the first 2 days have new numbers." in (slackwater.folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("", "strategy.adaptive: samples: missing; how many windows; add samples: 2"),
        (", samples: 9", "strategy.adaptive.samples: expected at most the number of windows, 5, not 9"),
        (", samples: 2, threshold: 3", "strategy.adaptive.threshold: policy first does not have this key; remove it"),
    ],
)
def test_missing_and_refused_settings_of_a_policy_are_reported_with_their_place(
    settings: str, says: str, slackwater: CommandLine
) -> None:
    specified(slackwater.folder, settings)

    assert f"queries[0].{says}" in slackwater("plan", "spec.yaml").err


def test_a_policy_says_which_queries_it_is_not_for(slackwater: CommandLine) -> None:
    specified(slackwater.folder, ", samples: 2")
    spec = slackwater.folder / "spec.yaml"
    spec.write_text(spec.read_text().replace("[a, b, other]", "[a, b, c, d, e, f, g, h, i, other]"))

    said = slackwater("plan", "spec.yaml").err
    assert "spec.yaml:22: queries[0].strategy: first is for 9 cells at most; take fewer in query beds" in said


ANOTHER_MEANING = {"fixed": {"transforms/sources/formats/avro_memory.py"}}
"""Files in which a policy's name is something else: a type of Avro."""


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_only_its_own_file_and_the_tables_know_a_policy(name: str) -> None:
    """No other file compares with its name or imports its classes; messages and docstrings may recommend it."""
    policies = {POLICIES[name].__name__, RULES[name].__name__}
    knowing = set()
    for path in (path for package in PACKAGES for path in modules(package)):
        if not any(word in path.read_text() for word in (name, *policies)):
            continue
        for node in ast.walk(syntax(path)):
            imported = isinstance(node, ast.ImportFrom) and bool(policies & {one.name for one in node.names})
            if imported or (isinstance(node, ast.Constant) and node.value == name):
                knowing.add(str(path.relative_to(ROOT)))

    knowing -= ANOTHER_MEANING.get(name, set())
    assert knowing == {f"privacy/adaptive/{name}.py", "privacy/adaptive/table.py", "pipelines/audit/adaptive.py"}
