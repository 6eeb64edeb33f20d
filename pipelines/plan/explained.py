"""`slackwater plan --explain`: every possible strategy of each query, sensitivities and shares of the budget."""

from collections.abc import Iterator
from typing import Any

from pipelines.plan.table import cells_text, columns, found_text, strategy_text
from pipelines.spec.series import series_text
from privacy.counted import counted
from privacy.upward import shown

HEADING = ("query", "cells", "", "strategy", "kind", "rmse", "first", "last", "share", "paper")


def explained_text(document: dict[str, Any]) -> str:
    """Return the plan with all strategies, as text."""
    budget = document["loss"]
    lines = [
        f"{document['release']}: epsilon {shown(budget['epsilon'])}, delta {shown(budget['delta'])}",
        document["claim"],
        "Conditions of the claim:",
        *(f"  {condition}" for condition in document["conditions"]),
        "",
        *columns([HEADING, *explained_rows(document)]),
        "",
        *explained_notes(document),
    ]
    return "\n".join(lines)


def explained_rows(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each number with each possible strategy of its query, with the columns of `HEADING`."""
    rows: list[tuple[str, ...]] = []
    for query in document["queries"]:
        for candidate in query["candidates"]:
            chosen, share = candidate["chosen"], candidate["share"]
            paper = "-" if candidate["paper_epsilon"] is None else shown(candidate["paper_epsilon"], 4)
            mine = (query["name"], cells_text(query["cells"]), "*" if chosen else "", strategy_text(candidate))
            spent = ("" if share is None else shown(sum(share.values()), 4), paper if chosen else "")
            for number in candidate["numbers"]:
                errors = (_rounded(number[name]) for name in ("rmse", "stddev_first", "stddev_last"))
                rows.append((*mine, _number_text(number), *errors, *spent))
    return rows


def explained_notes(document: dict[str, Any]) -> list[str]:
    """Return notes to the table of strategies, and the meaning of its columns."""
    notes = []
    if document["states"] is not None:
        states = document["states"]
        path = " -> ".join("/".join(part) for part in states["path"])
        merged = "; ".join(", ".join(part) for part in states["merged"]) or "none"
        notes.append(f"states: at most {counted(states['k'], 'change')}, along {path}")
        notes.append(f"states that are merged, so that no query may distinguish them: {merged}")
    for query in document["queries"]:
        for candidate in query["candidates"]:
            notes += [f"{query['name']}: {note}" for note in _notes(candidate)]
    return [
        *notes,
        *found_text(document),
        f"rmse, first, last: over {counted(document['windows'], 'window')}; `-` if it depends on the data. Of "
        "adaptive publication the first is that of the first window, which is sampled in any case.",
        "*: chosen. share: of the budget. paper: the epsilon that the paper's composition would state for this noise.",
    ]


def _notes(candidate: dict[str, Any]) -> Iterator[str]:
    if candidate["chosen"]:
        of = "node over cells" if any("of" in number for number in candidate["numbers"]) else "cell"
        yield _carried_text(candidate["carried"], of)
    if "above_least" in candidate["parameters"]:
        yield _weights_text(candidate["parameters"])
    for family in candidate["families"]:
        yield _family_text(family)
        if len(family["noise"]) > 1:
            noise = ", ".join(f"{n['component']} {n['stddev']:.4g}" for n in family["noise"])
            yield f"standard deviation of one node's sums: {noise}"


def _weights_text(parameters: dict[str, Any]) -> str:
    weights, above = parameters["weights"], shown(100 * parameters["above_least"], 2)
    return (
        f"{counted(len(weights), 'weight')} from {min(weights):g} to {max(weights):g}: the weighted squared error "
        f"is at most {above} % above the least that any budgets of windows can have"
        + (", if they continued without end" if parameters["for_ever"] else "")
    )


def _number_text(number: dict[str, Any]) -> str:
    """Return the kind of numbers, with the cells over which their error is averaged, if they are named."""
    return series_text(number) + (f", {number['of']}" if "of" in number else "")


def _carried_text(carried: dict[str, Any], of: str) -> str:
    grows = "for any number of windows" if carried["bounded"] else "and more for a longer schedule"
    return f"kept between runs: at most about {counted(carried['numbers'], 'number')} for each {of}, {grows}"


def _family_text(family: dict[str, Any]) -> str:
    text = f"{family['family']}: a unit moves the nodes by L1 {family['l1']:.4g}, L2 {family['l2']:.4g} in all"
    if family["paper"] is None:
        return text
    text += f"; the paper charges {counted(family['paper']['nodes'], 'node')}"
    if "nodes_claimed" in family["paper"]:
        text += f" (its theorem 4.3: {family['paper']['nodes_claimed']:.4g})"
    return text


def _rounded(error: float | None) -> str:
    return "-" if error is None else f"{error:.4g}"
