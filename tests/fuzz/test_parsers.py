"""The parsers of specs, conditions and designs on valid and on changed texts; `make fuzz` searches for longer."""

from random import Random

import pytest

from tests.fuzz.corpus import PARSERS
from tests.fuzz.mutations import mutate
from tests.fuzz.parsers import SEEDS, check
from tests.searches import TIMES


@pytest.mark.parametrize("target", PARSERS)
def test_every_seed_is_valid(target: str) -> None:
    assert [check(target, data) for data in SEEDS[target]] == [True] * len(SEEDS[target])
    assert SEEDS[target]


@pytest.mark.few(5)
@pytest.mark.parametrize("target", PARSERS)
def test_a_changed_text_is_a_value_or_an_error_that_names_its_place(target: str) -> None:
    for seed in range(6 * TIMES):
        choose = Random(seed)
        data = mutate(choose.choice(SEEDS[target]), choose.choice(SEEDS[target]), choose)
        try:
            check(target, data)
        except BaseException as error:
            error.add_note(f"{target}, seed {seed}")
            raise


@pytest.mark.parametrize("text", ["ward IN ('a') % " + "9" * 8000, "f" * 8000 + "(ward)", "a > '" + "x" * 9000])
def test_an_error_about_a_long_condition_is_short(text: str) -> None:
    """Found by `make fuzz`."""
    assert not check("condition", text.encode())
