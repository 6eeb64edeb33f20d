"""The ledger against sums by hand; and that nothing odd makes a ledger."""

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from pipelines.epochs.plans import plan_of
from pipelines.ledger import account
from pipelines.ledger.account import ledger_document
from pipelines.ledger.operation import ledger_text
from pipelines.plan.operation import whole_document
from pipelines.plan.table import plan_text
from pipelines.spec.load import Spec
from pipelines.store.commit import Commit
from privacy.accounting.accounting import Budget
from privacy.planning.plan import Plan
from privacy.planning.spent import Spent
from tests.pipelines.spec_text import loaded
from transforms.common.errors import RefusedError

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000

SPEC = """\
release: wards
changelog: {format: parquet, path: data/*.parquet, entry: stay, time: at, before: before_, after: after_}
privacy:
  epsilon: 0.7
  constraint: {at_most: 4}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-11T00:00:00Z}
queries:
  - {name: stays, measure: count, publish: [change]}
  - {name: beds, measure: count, publish: [level], weight: 3}
output: {public: public, private: private}
strategy: disjoint
"""


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    return loaded(tmp_path, SPEC)


@pytest.fixture
def plan(spec: Spec) -> Plan:
    return plan_of(spec)


def commits(spec: Spec, plan: Plan, *windows: int) -> list[Commit]:
    """Return epochs, each of which ends at a given number of windows in total."""
    return [
        Commit(
            release=spec.release,
            epoch=number,
            spec_sha256=spec.sha256,
            spec="",
            released=released,
            windows=closed,
            start=int(START.timestamp()) * 1_000_000 + released * DAY,
            until=int(START.timestamp()) * 1_000_000 + closed * DAY,
            committed_at=f"2026-02-{number:02}T03:00:00+00:00",
            loss=plan.budget,
            statement=plan.statement,
            attempt="0123456789abcdef",
        )
        for number, (released, closed) in enumerate(itertools.pairwise((0, *windows)), start=1)
    ]


def test_the_ledger_lists_the_budget_of_each_epoch_and_the_rest(spec, plan):
    """Four changes of 0.7 at weights 1 and 3. The first counts windows, the second the initial level and windows."""
    document = ledger_document(commits(spec, plan, 1, 3, 10), spec, plan)

    assert (document["release"], document["spec_sha256"]) == ("wards", spec.sha256)
    assert document["total"] == {"epsilon": plan.budget.epsilon, "delta": 0.0}
    assert document["total"]["epsilon"] == pytest.approx(0.7)
    first, second, third = document["epochs"]
    assert (first["epoch"], first["released"], first["windows"], first["until"], first["committed_at"]) == (
        1,
        0,
        1,
        "2026-01-02T00:00:00Z",
        "2026-02-01T03:00:00+00:00",
    )
    assert (third["epoch"], third["released"], third["windows"], third["until"]) == (3, 3, 10, "2026-01-11T00:00:00Z")
    stays, beds = 0.7 / 4, 0.7 * 3 / 4
    for epoch, of_stays, of_beds in ((first, 1 / 4, 2 / 4), (second, 3 / 4, 1), (third, 1, 1)):
        assert [query["name"] for query in epoch["queries"]] == ["stays", "beds"]
        shares = [query["spent"]["epsilon"] for query in epoch["queries"]]
        assert shares == pytest.approx([stays * of_stays, beds * of_beds])
        assert epoch["spent"] == {"epsilon": pytest.approx(sum(shares)), "delta": 0.0}
    assert document["spent"] == third["spent"] == document["total"]
    assert document["remaining"] == {"epsilon": 0.0, "delta": 0.0}
    assert [query["remaining"] for query in document["queries"]] == [{"epsilon": 0.0}, {"epsilon": 0.0}]
    assert json.loads(json.dumps(document)) == document


def test_the_remaining_budget_is_the_difference_of_the_printed_numbers(spec, plan, monkeypatch):
    """In floating point 0.7 - 0.6 is 0.09999999999999998."""
    round_plan = replace(plan, budget=Budget(epsilon=0.7))
    monkeypatch.setattr(account, "spent", lambda *_, **__: Spent(epsilon=0.6, delta=0.0, shares=(0.1, 0.2)))

    document = ledger_document(commits(spec, round_plan, 1), spec, round_plan)

    assert document["remaining"] == {"epsilon": 0.1, "delta": 0.0}
    for query in document["queries"]:
        total, spent, remaining = (Fraction(repr(query[name]["epsilon"])) for name in ("total", "spent", "remaining"))
        assert abs(total - spent - remaining) <= remaining / 2**52


def test_nothing_is_spent_before_the_first_epoch(spec, plan):
    document = ledger_document([], spec, plan)

    assert document["spent"] == {"epsilon": 0.0, "delta": 0.0}
    assert document["remaining"] == document["total"]
    assert document["epochs"] == []
    assert "nothing has been released" in ledger_text(document, plan)


def test_gaussian_shares_are_stated_in_rho_and_delta_is_spent_at_once(tmp_path):
    text = SPEC.replace("epsilon: 0.7", "epsilon: 0.7\n  delta: 1.0e-9\n  mechanism: gaussian")
    spec = loaded(tmp_path, text)
    plan = plan_of(spec)

    document = ledger_document(commits(spec, plan, 1, 10), spec, plan)

    first, last = document["epochs"]
    assert [set(query["spent"]) for query in first["queries"]] == [{"rho"}, {"rho"}]
    assert first["queries"][0]["spent"]["rho"] == pytest.approx(document["queries"][0]["total"]["rho"] / 4)
    assert first["spent"]["delta"] == document["total"]["delta"] == 1e-9
    assert document["remaining"] == {"epsilon": 0.0, "delta": 0.0}
    assert 0 < first["spent"]["epsilon"] < last["spent"]["epsilon"]
    assert "in rho" in ledger_text(document, plan)


def test_an_owner_of_several_entries_spends_more_at_first(tmp_path):
    """Four entries of an owner may appear in one window: 4 at once, where one entry is 1."""
    entered = SPEC.replace("publish: [change]", "publish: [entered]")
    owned = loaded(tmp_path, entered.replace("  epsilon: 0.7", "  unit: person\n  epsilon: 0.7"))
    plain = loaded(tmp_path, entered)

    shares = [
        ledger_document(commits(spec, plan_of(spec), 1), spec, plan_of(spec))["epochs"][0]["queries"][0]["spent"]
        for spec in (owned, plain)
    ]

    assert [share["epsilon"] for share in shares] == pytest.approx([0.7 / 4, 0.7 / 4 / 2])


def test_the_text_has_a_line_for_each_epoch(spec, plan):
    lines = ledger_text(ledger_document(commits(spec, plan, 1, 3), spec, plan), plan).splitlines()

    assert lines[0] == f"wards: spec {spec.sha256}"
    rows = [line.split() for line in lines]
    assert ["total", "0.7", "0", "0.175", "0.525"] in rows
    assert ["spent", "0.65625", "0", "0.13125", "0.525"] in rows
    assert ["remaining", "0.04375", "0", "0.04375", "0"] in rows
    second = "2 2 to 3 4 January 2026, 00:00 UTC 2 February 2026, 03:00 UTC 0.65625 0 0.13125 0.525"
    assert second.split() in rows


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        (1, "The remaining budget is for future windows, and for nothing else."),
        (4, "The whole budget already counts as spent, and future windows cost nothing more."),
        (10, "All windows are published, so nothing more will be spent."),
    ],
)
def test_the_ledger_states_the_cost_of_future_windows(spec, plan, windows, said):
    text = ledger_text(ledger_document(commits(spec, plan, windows), spec, plan), plan)

    assert text.endswith(f"for all mutations of one privacy unit. {said}")
    assert f"{windows} " in text
    assert "1 to 1 " not in text


@pytest.mark.slow
def test_nothing_remains_of_a_budget_that_each_span_has_by_itself(tmp_path):
    text = SPEC.replace("constraint: {at_most: 4}", "protects: {span: 3d}").replace("strategy: disjoint", "")
    spec = loaded(tmp_path, text.replace(", until: 2026-01-11T00:00:00Z", ""))
    plan = plan_of(spec)

    text = ledger_text(ledger_document(commits(spec, plan, 7), spec, plan), plan)

    assert "\nremaining" not in text
    assert "everything that one privacy unit does in any 3 days. The budget is for each such period separately" in text


def test_printed_budgets_are_at_least_the_proved_ones_and_add_up(tmp_path):
    """A third of epsilon 1 is 0.333334 to them, the whole is 1; JSON has 0.9999999999999966 as it is."""
    text = SPEC.replace("epsilon: 0.7", "epsilon: 1").replace("at_most: 4", "at_most: 3").replace(", weight: 3", "")
    spec = loaded(tmp_path, text)
    plan = plan_of(spec)
    document = ledger_document(commits(spec, plan, 1), spec, plan)
    lines = ledger_text(document, plan).splitlines()

    assert document["total"]["epsilon"] < 1
    total, spent, left = (line.split()[1:] for line in lines if line.startswith(("total", "spent", "remaining")))
    assert total == ["1", "0", "0.5", "0.5"]
    assert spent == ["0.5", "0", "0.166667", "0.333334"]
    assert left == ["0.5", "0", "0.333333", "0.166666"]
    assert "(1, 0)-differential privacy" in plan.claim
    assert plan_text(whole_document(spec, plan, 10)).startswith("wards: epsilon 1, delta 0\n")


NOT_NEXT = "does not follow from the one before it"
NO_WINDOWS = "its windows do not fit the schedule"
UNREADABLE = "cannot be understood"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epoch": 3}, NOT_NEXT),
        ({"released": 0}, NOT_NEXT),
        ({"released": 2}, NOT_NEXT),
        ({"windows": 1}, NO_WINDOWS),
        ({"windows": 4}, NO_WINDOWS),
        ({"windows": 11, "until": int(START.timestamp()) * 1_000_000 + 11 * DAY}, NO_WINDOWS),
        ({"until": 0}, NO_WINDOWS),
        ({"spec_sha256": "0" * 64}, "under another spec"),
        ({"loss": Budget(epsilon=0.35)}, "= \\(0.35, 0.0\\) in all"),
        ({"loss": Budget(epsilon=0.7, delta=1e-9)}, "= \\(0.7, 1e-09\\) in all"),
        ({"committed_at": "yesterday"}, UNREADABLE),
    ],
    ids=str,
)
def test_a_commit_that_does_not_fit_makes_no_ledger(spec, plan, change, message):
    first, second = commits(spec, plan, 1, 3)

    with pytest.raises(RefusedError, match=f"release 'wards', epoch 2: .*{message}"):
        ledger_document([first, replace(second, **change)], spec, plan)


def test_an_epoch_beyond_the_calendar_makes_no_ledger(tmp_path):
    spec = loaded(tmp_path, SPEC.replace(", until: 2026-01-11T00:00:00Z", ""))
    plan = plan_of(spec)

    with pytest.raises(RefusedError, match=UNREADABLE):
        ledger_document(commits(spec, plan, 10**9), spec, plan)


def test_a_lost_epoch_makes_no_ledger(spec, plan):
    first, _, third = commits(spec, plan, 1, 3, 4)

    with pytest.raises(RefusedError, match=NOT_NEXT):
        ledger_document([first, third], spec, plan)


def test_a_plan_that_spends_more_than_the_spec_allows_makes_no_ledger(spec, plan):
    greedy = replace(plan, budget=Budget(epsilon=0.7000001))

    with pytest.raises(RefusedError, match=r"0\.7000001 is spent of 0\.7; nothing more may be released"):
        ledger_document([], spec, greedy)


def test_a_loss_that_differs_in_its_last_digits_is_the_plans(spec, plan):
    first, second = commits(spec, plan, 1, 10)
    near = replace(first, loss=Budget(epsilon=plan.budget.epsilon * (1 + 1e-13)))

    assert ledger_document([near, second], spec, plan)["spent"]["epsilon"] == plan.budget.epsilon


def test_spent_budget_is_never_returned(spec, plan, monkeypatch):
    """The solver of a loss may come out a last digit lower for one window more."""
    falling = iter([0.5, 0.5 - 1e-12])
    monkeypatch.setattr(account, "spent", lambda *_, **__: Spent(epsilon=next(falling), delta=0.0, shares=(0.1, 0.1)))

    document = ledger_document(commits(spec, plan, 1, 2), spec, plan)

    assert [epoch["spent"]["epsilon"] for epoch in document["epochs"]] == [0.5, 0.5]
    assert document["spent"]["epsilon"] == 0.5


def test_spending_above_the_budget_is_refused(spec, plan, monkeypatch):
    monkeypatch.setattr(account, "spent", lambda *_, **__: Spent(epsilon=0.8, delta=0.0, shares=(0.1, 0.1)))

    with pytest.raises(RefusedError, match=r"release 'wards': 0\.8 is spent of"):
        ledger_document(commits(spec, plan, 1), spec, plan)
