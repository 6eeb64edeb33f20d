"""`slackwater plan --explain`: every strategy that a query could have, sensitivities and shares of the budget."""

from typing import Any

from pipelines.reports.plan_report import series_text
from privacy.counted import counted
from privacy.upward import shown


def explained_text(document: dict[str, Any]) -> str:
    """The same for people."""
    budget = document["loss"]
    lines = [
        f"{document['release']}: epsilon {shown(budget['epsilon'])}, delta {shown(budget['delta'])}",
        document["claim"],
        "It rests on this:",
        *(f"  {condition}" for condition in document["conditions"]),
        "",
    ]
    if document["states"] is not None:
        states = document["states"]
        path = " -> ".join("/".join(part) for part in states["path"])
        lines.append(f"states: at most {counted(states['k'], 'change')}, along {path}")
        merged = "; ".join(", ".join(part) for part in states["merged"]) or "none"
        lines += [f"        merged, so that no query may distinguish them: {merged}", ""]
    lines.append(
        f"{'query':<16} {'cells':>6}   {'strategy':<36} {'kind':<14}"
        f" {'rmse':>10} {'first':>10} {'last':>10} {'share':>8} {'paper':>8}"
    )
    for query in document["queries"]:
        for candidate in query["candidates"]:
            lines += _candidate_lines(query, candidate)
    lines += [
        "",
        f"rmse, first, last: over {counted(document['windows'], 'window')}; `-` where it depends on the data. Of "
        "adaptive publication the first is that of the first window, which is sampled in any case.",
        "*: taken. share: of the budget. paper: the epsilon that the paper's composition would state for this noise.",
    ]
    return "\n".join(lines)


def _candidate_lines(query: dict[str, Any], candidate: dict[str, Any]) -> list[str]:
    lines = []
    mark = "*" if candidate["chosen"] else " "
    settings = ", ".join(str(v) for v in candidate["parameters"].values() if type(v) in (int, str))
    strategy = f"{candidate['strategy']} ({settings})" if settings else candidate["strategy"]
    share = "" if candidate["share"] is None else shown(sum(candidate["share"].values()), 4)
    paper = "-" if candidate["paper_epsilon"] is None else shown(candidate["paper_epsilon"], 4)
    for number in candidate["numbers"]:
        errors = [_rounded(number[name]) for name in ("rmse", "stddev_first", "stddev_last")]
        lines.append(
            f"{query['name']:<16} {query['cells']:>6} {mark} {strategy:<36} {_number_text(number):<14} "
            f"{errors[0]:>10} {errors[1]:>10} {errors[2]:>10} {share:>8} {paper if candidate['chosen'] else '':>8}"
        )
    if candidate["chosen"]:
        of = "node over cells" if any("of" in number for number in candidate["numbers"]) else "cell"
        lines.append(f"{'':<16} {_carried_text(candidate['carried'], of)}")
    if "above_least" in candidate["parameters"]:
        lines.append(f"{'':<16} {_weights_text(candidate['parameters'])}")
    for family in candidate["families"]:
        lines.append(f"{'':<16} {_family_text(family)}")
        if len(family["noise"]) > 1:
            noise = ", ".join(f"{n['component']} {n['stddev']:.4g}" for n in family["noise"])
            lines.append(f"{'':<16} standard deviation of one node's sums: {noise}")
    return lines


def _weights_text(parameters: dict[str, Any]) -> str:
    weights, above = parameters["weights"], shown(100 * parameters["above_least"], 2)
    return (
        f"{counted(len(weights), 'weight')} from {min(weights):g} to {max(weights):g}: the weighted squared error "
        f"is at most {above} % above the least that any budgets of windows can have"
        + (", were they to go on for ever" if parameters["for_ever"] else "")
    )


def _number_text(number: dict[str, Any]) -> str:
    """Which numbers, and over which cells their error is averaged where that is asked for."""
    return series_text(number) + (f", {number['of']}" if "of" in number else "")


def _carried_text(carried: dict[str, Any], of: str) -> str:
    grows = "however many windows have passed" if carried["bounded"] else "more the longer the schedule is"
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
