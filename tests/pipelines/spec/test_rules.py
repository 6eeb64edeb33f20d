"""Rules between a spec's queries and its privacy and schedule: what is taken, and what is refused with which words."""

from pathlib import Path

import pytest

from pipelines.spec.load import Query
from privacy.series import Series
from privacy.strategies.choice import Choice
from tests.pipelines.spec_text import GOOD, changed, loaded, problems

DELTA = changed("delta: 0", "delta: 1.0e-9")
NO_END = changed("  until: 2026-02-01T00:00:00Z\n", "", DELTA)
SIZES = changed("    weight: 1\n", "    expected: 100\n", changed("delta: 0", "split: relative_error"))
TWO_SIZES = changed("{mean: waited, min: 0, max: 240}", "count\n    expected: 2.5", SIZES)
OWN = "    weight: 1\n"
"""A line of the first query that others may take the place of."""


def _beds(folder: Path, text: str) -> Query:
    return loaded(folder, text).queries[0]


@pytest.mark.parametrize(
    ("publish", "series"),
    [
        ("{sliding: 7d}", (Series(kind="sliding", width=7),)),
        ("[{sliding: 1w, every: 2d}]", (Series(kind="sliding", width=7, every=2),)),
        ("[{sliding: 2d, every: 1w}]", (Series(kind="sliding", width=2, every=7),)),
        ("[{sliding: 31d}]", (Series(kind="sliding", width=31),)),
        (
            "[{sliding: 48h}, left, {sliding: 1w}]",
            (Series(kind="sliding", width=2), Series(kind="left"), Series(kind="sliding", width=7)),
        ),
    ],
)
def test_sliding_numbers_are_counted_in_windows(tmp_path: Path, publish: str, series: tuple[Series, ...]) -> None:
    assert _beds(tmp_path, changed("[level, change]", publish)).publish == series


def test_sliding_windows_may_be_of_any_width_if_there_is_no_end(tmp_path: Path) -> None:
    text = changed("[level, change]", "{sliding: 520w}", NO_END)

    assert _beds(tmp_path, text).publish == (Series(kind="sliding", width=3640),)


def test_sliding_windows_of_more_windows_than_can_be_counted_are_refused(tmp_path: Path) -> None:
    text = changed("[level, change]", "{sliding: 1w}", changed("every: 1d", "every: 10ms", NO_END))

    assert problems(tmp_path, text) == [
        "spec.yaml:20: queries[0].publish.sliding: 60,480,000 windows; use at most 1d3h46m40s"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "choice"),
    [
        ("auto", Choice()),
        ("disjoint", Choice(name="disjoint")),
        ("tree", Choice(name="tree")),
        ("{tree: {}}", Choice(name="tree")),
        ("{tree: {height: 1}}", Choice(name="tree", height=1)),
        (
            "{tree: {branching: 16, height: 3, refine: least_squares}}",
            Choice(name="tree", branching=16, height=3, refine="least_squares"),
        ),
        (
            "{tree: {branching: 1024, height: 40, refine: none}}",
            Choice(name="tree", branching=1024, height=40, refine="none"),
        ),
        ("factorised", Choice(name="factorised")),
        ("{factorised: square_root}", Choice(name="factorised", form="square_root")),
        ("{factorised: arma}", Choice(name="factorised", form="arma")),
        ("{factorised: window}", Choice(name="factorised", form="window")),
    ],
)
def test_a_strategy_is_for_all_queries_or_for_one(tmp_path: Path, said: str, choice: Choice) -> None:
    everywhere = loaded(tmp_path, changed("strategy: auto", f"strategy: {said}", DELTA)).queries
    alone = loaded(tmp_path, changed(OWN, f"    strategy: {said}\n", DELTA)).queries

    assert [query.strategy for query in everywhere] == [choice, choice]
    assert [query.strategy for query in alone] == [choice, Choice()]


def test_a_querys_own_strategy_wins(tmp_path: Path) -> None:
    text = changed(OWN, "    strategy: auto\n", changed("strategy: auto", "strategy: disjoint"))

    assert [query.strategy.name for query in loaded(tmp_path, text).queries] == ["auto", "disjoint"]


def test_a_strategy_that_no_query_is_left_with_is_not_checked(tmp_path: Path) -> None:
    text = changed("strategy: auto", "strategy: {factorised: leaky}")
    text = changed(OWN, "    strategy: tree\n", text)
    text = changed("max: 240}", "max: 240}\n    strategy: disjoint", text)

    assert [query.strategy.name for query in loaded(tmp_path, text).queries] == ["tree", "disjoint"]


def test_sliding_strategy_is_disjoint_without_sliding_windows(tmp_path: Path) -> None:
    text = changed("strategy: auto", "strategy: sliding", changed("[level, change]", "[level, {sliding: 7d}]"))

    assert [query.strategy.name for query in loaded(tmp_path, text).queries] == ["sliding", "disjoint"]


def test_factorised_needs_noise_that_is_gaussian_and_charged_as_a_whole(tmp_path: Path) -> None:
    text = changed("strategy: auto", "strategy: {factorised: leaky}", DELTA)
    laplace = changed("delta: 1.0e-9", "delta: 1.0e-9\n  mechanism: laplace", text)
    gaussian = changed("mechanism: laplace", "mechanism: gaussian", laplace)
    paper = changed("delta: 1.0e-9", "delta: 1.0e-9\n  accounting: paper", text)

    assert loaded(tmp_path, gaussian).queries[0].strategy.form == "leaky"
    assert problems(tmp_path, laplace) == [
        "spec.yaml:26: strategy: factorised needs Gaussian noise; give privacy.mechanism: gaussian,"
        " or use strategy: tree"
    ]
    assert problems(tmp_path, paper) == [
        "spec.yaml:26: strategy: factorised has no bound with privacy.accounting: paper; remove that,"
        " or use strategy: tree"
    ]


@pytest.mark.parametrize("form", ["square_root", "leaky", "arma"])
def test_most_factorised_forms_need_an_end(tmp_path: Path, form: str) -> None:
    text = changed(OWN, f"    strategy: {{factorised: {form}}}\n", NO_END)

    assert problems(tmp_path, text) == [
        f"spec.yaml:21: queries[0].strategy: {form} needs a last window;"
        " add schedule.until, or use {factorised: window} or tree"
    ]


@pytest.mark.parametrize("said", ["factorised", "{factorised: window}", "{tree: {refine: least_squares}}"])
def test_other_strategies_need_no_end(tmp_path: Path, said: str) -> None:
    text = changed(OWN, f"    strategy: {said}\n", NO_END)

    assert _beds(tmp_path, text).strategy.name == said.strip("{").split(":")[0]


def test_shares_may_follow_the_expected_sizes(tmp_path: Path) -> None:
    spec = loaded(tmp_path, TWO_SIZES)

    assert spec.privacy.split == "relative_error"
    assert [query.expected for query in spec.queries] == [100, 2.5]
    assert loaded(tmp_path, GOOD).privacy.split == "weights"
    assert [query.expected for query in loaded(tmp_path, GOOD).queries] == [None, None]


def test_expected_sizes_are_required_of_every_query_if_budgets_follow_them(tmp_path: Path) -> None:
    assert problems(tmp_path, changed("    expected: 2.5\n", "", TWO_SIZES)) == [
        "spec.yaml:23: queries[1].expected: missing; privacy.split: relative_error needs a typical size"
        " of the numbers, add expected: 100"
    ]
    by_weight = loaded(tmp_path, changed("split: relative_error", "split: weights", TWO_SIZES))
    assert [query.expected for query in by_weight.queries] == [100, 2.5]
    of_mean = changed("min: 0, max: 240}", "min: 0, max: 240}\n    expected: 60", GOOD)
    assert problems(tmp_path, of_mean) == [
        "spec.yaml:25: queries[1].expected: is for counts and sums, since the error of a ratio depends on the data; "
        "remove it"
    ]


def test_a_weight_next_to_expected_sizes_is_refused(tmp_path: Path) -> None:
    text = changed("expected: 2.5", "expected: 2.5\n    weight: 1", TWO_SIZES)

    assert problems(tmp_path, text) == [
        "spec.yaml:26: queries[1].weight: the shares follow from expected with privacy.split: relative_error;"
        " remove one of the two"
    ]


def test_errors_that_depend_on_the_data_cannot_be_made_equal(tmp_path: Path) -> None:
    text = changed("max: 240}", "max: 240}\n    expected: 60", SIZES)

    assert problems(tmp_path, text) == [
        "spec.yaml:24: queries[1].measure: its error depends on the data;"
        " privacy.split: relative_error is for counts and sums"
    ]


@pytest.mark.parametrize("measure", ["count", "{sum: waited, min: 0, max: 240}"])
@pytest.mark.parametrize("publish", ["level", "[change, entered]", "[{sliding: 7d}, left]"])
def test_counts_and_sums_can_be_made_consistent(tmp_path: Path, measure: str, publish: str) -> None:
    text = changed("measure: count", f"measure: {measure}", changed("[level, change]", publish))

    assert _beds(tmp_path, changed(OWN, "    consistent: true\n", text)).consistent
    assert not _beds(tmp_path, text).consistent


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("measure: count", "measure: {variance: w, min: 0, max: 1}", "for counts and sums only; remove it"),
        (
            "measure: count",
            "measure: {sum: w, min: -0.5, max: 1}",
            "a sum of values below 0 may be negative; use min: 0, or remove it",
        ),
        (
            "[level, change]",
            "[change, {sliding: 7d}]",
            "changes may be negative; publish level, entered or left, or remove it",
        ),
    ],
)
def test_sums_that_may_be_negative_are_not_made_consistent(tmp_path: Path, old: str, new: str, error: str) -> None:
    text = changed(OWN, "    consistent: true\n", changed(old, new))

    assert problems(tmp_path, text) == [f"spec.yaml:22: queries[0].consistent: {error}"]


@pytest.mark.slow
def test_cells_are_made_consistent_up_to_the_number_that_fits_in_memory(tmp_path: Path) -> None:
    most = 2**24 // 8
    keys = f"{{a: [{', '.join(map(str, range(2048)))}], b: [{', '.join(map(str, range(most // 2048)))}]}}"
    text = changed("{ward: [a, b, other]}", keys, changed("2026-02-01", "2026-01-08"))
    text = changed(OWN, "    consistent: true\n", text)

    assert _beds(tmp_path, text).cells == most
    assert problems(tmp_path, changed("2026-01-08", "2026-01-09", text)) == [
        "spec.yaml:22: queries[0].consistent: 2,097,152 cells in 8 windows; at most 1,864,135 cells,"
        " list fewer or remove this"
    ]
