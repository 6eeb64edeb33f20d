"""The specs of `python -m tests.audit.claims`: each strategy, policy and way to sum over cells has a valid one."""

from pathlib import Path

from pipelines.spec.load import load
from privacy.adaptive.table import POLICIES
from privacy.cells.table import OFFERS as CELLS
from privacy.strategies.table import OFFERS as STRATEGIES
from tests.audit.claims import claims


def test_each_entry_of_the_tables_has_a_spec_that_is_valid(tmp_path: Path) -> None:
    every = [*claims()]
    plain = [one for one in every if one.name.startswith(("strategy", "policy", "cells")) and "," not in one.name]

    assert [claim.name for claim in plain if not load(claim.written(tmp_path)).queries] == []
    for word, table in (("strategy", STRATEGIES), ("policy", POLICIES), ("cells", CELLS)):
        assert {name for name in table if any(claim.name.startswith(f"{word} {name}") for claim in every)} == {*table}
