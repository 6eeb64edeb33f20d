"""The specs of `python -m tests.audit.claims`: each kind of each table has a valid one."""

from pathlib import Path
from typing import get_args

import pytest

from pipelines.local.spec import BoundSection, LocalSection, load_local
from pipelines.spec.load import load
from pipelines.spec.measures import MeasureSection
from pipelines.spec.privacy import ConstraintSection, PlainSection, ProtectsSection
from privacy.adaptive.table import POLICIES
from privacy.cells.table import OFFERS as CELLS
from privacy.measure import COUNTS, VALUED
from privacy.strategies.table import OFFERS as STRATEGIES
from tests.audit.claims import MEASURES, PROTECTIONS, SURVEYS, Claim, claims

EVERY = [*claims()]


def test_each_entry_of_the_tables_has_a_spec_that_is_valid(tmp_path: Path) -> None:
    plain = [one for one in EVERY if one.name.startswith(("strategy", "policy", "cells")) and "," not in one.name]

    assert [claim.name for claim in plain if not load(claim.written(tmp_path)).queries] == []
    for word, table in (("strategy", STRATEGIES), ("policy", POLICIES), ("cells", CELLS)):
        assert {name for name in table if any(claim.name.startswith(f"{word} {name}") for claim in EVERY)} == {*table}


@pytest.mark.parametrize("claim", [one for one in EVERY if one.name.startswith(("protection", "measure"))], ids=str)
def test_claims_of_protections_and_measures_are_valid(claim: Claim, tmp_path: Path) -> None:
    assert load(claim.written(tmp_path)).queries


def test_each_bound_and_protection_that_a_spec_can_have_is_claimed() -> None:
    bounds = [section["constraint"] for section in PROTECTIONS.values() if "constraint" in section]
    protected = [section["protects"] for section in PROTECTIONS.values() if "protects" in section]
    classes = [one for bound in bounds for one in bound.get("classes", {}).values()]

    for sections, model in ((bounds, ConstraintSection), (protected, ProtectsSection)):
        assert {key for section in sections for key in section} == {*model.model_fields}
    assert {key for one in classes for key in one} == {*PlainSection.model_fields} - {"entries"}  # for owners' classes


def test_each_measure_and_kind_of_survey_is_claimed(tmp_path: Path) -> None:
    surveys = [claim for claim in EVERY if claim.survey]

    assert {*MEASURES} == {*VALUED, *COUNTS} - {"units"}
    assert {*VALUED} == {name for name in MeasureSection.model_fields if name not in ("min", "max", "invalid")}
    assert "measure units" in [claim.name for claim in EVERY]
    methods = {*get_args(LocalSection.model_fields["method"].annotation)} - {"auto"}
    assert methods == {load_local(claim.written(tmp_path)).method for claim in surveys} - {None}
    assert {key for section in SURVEYS.values() for key in section["constraint"]} == {*BoundSection.model_fields}
