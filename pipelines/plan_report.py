"""`slackwater plan`: what a release will cost and how far its numbers will be off, told before any data is read."""

from typing import Any

import numpy as np

from pipelines.spec import Query, Spec
from privacy import disjoint
from privacy.disjoint import Kind
from privacy.plan import Plan, Released, stddev

STRATEGY = "disjoint"


def plan_document(spec: Spec, plan: Plan, windows: int) -> dict[str, Any]:
    """The plan as one JSON document; members as docs/guide.md lists them.

    Args:
        windows: over how many windows the errors are averaged.
    """
    return {
        "release": spec.release,
        "loss": {"epsilon": plan.loss.epsilon, "delta": plan.loss.delta},
        "statement": plan.sentence,
        "accounting": plan.accounting,
        "windows": windows,
        "states": _states(spec),
        "queries": [
            {
                "name": query.name,
                "cells": query.cells,
                "candidates": [_candidate(query, plan, place, windows)],
            }
            for place, query in enumerate(spec.queries)
        ],
    }


def _candidate(query: Query, plan: Plan, place: int, windows: int) -> dict[str, Any]:
    released = [r for r in plan.released if r.query == place]
    return {
        "strategy": STRATEGY,
        "parameters": {},
        "mechanism": released[0].noise[0].name,
        "chosen": True,
        "why": "the only strategy of this version",
        "paper_epsilon": sum(r.paper_epsilon for r in released),
        "share": {plan.share_unit: sum(r.share for r in released)},
        "families": [_family(r, plan) for r in released],
        "numbers": [_number(plan, place, kind, windows) for kind in query.publish],
    }


def _family(released: Released, plan: Plan) -> dict[str, Any]:
    components = plan.demands[released.query].measure.components
    return {
        "family": released.family,
        "l1": released.sensitivity.l1,
        "l2": released.sensitivity.l2,
        "nodes": released.sensitivity.nodes,
        "share": {plan.share_unit: released.share},
        "noise": [
            {"component": c.name, "scale": law.scale * c.grid, "stddev": law.variance**0.5 * c.grid}
            for c, law in zip(components, released.noise, strict=True)
        ],
    }


def _number(plan: Plan, place: int, kind: Kind, windows: int) -> dict[str, Any]:
    """Errors of one kind of number; null for ratios, whose error depends on the data."""
    if len(plan.of(place, disjoint.family_of(kind)).noise) > 1 or windows == 0:
        return {"kind": kind, "rmse": None, "stddev_first": None, "stddev_last": None}
    deviations = stddev(plan, place, kind, windows)
    return {
        "kind": kind,
        "rmse": float(np.sqrt(np.mean(deviations**2))),
        "stddev_first": float(deviations[0]),
        "stddev_last": float(deviations[-1]),
    }


def _states(spec: Spec) -> dict[str, Any] | None:
    bound = spec.privacy.bound
    if bound is None:
        return None
    return {
        "k": bound.k,
        "path": [list(part) for part in bound.path],
        "merged": [list(part) for part in bound.merged],
    }


def plan_text(document: dict[str, Any]) -> str:
    """The same for people."""
    loss = document["loss"]
    lines = [
        f"{document['release']}: epsilon {loss['epsilon']:.6g}, delta {loss['delta']:.6g}",
        document["statement"],
        "",
    ]
    if document["states"] is not None:
        states = document["states"]
        path = " -> ".join("/".join(part) for part in states["path"])
        lines.append(f"states: at most {states['k']} changes, along {path}")
        merged = "; ".join(", ".join(part) for part in states["merged"]) or "none"
        lines += [f"        merged, so that no query may tell them apart: {merged}", ""]
    lines.append(
        f"{'query':<16} {'cells':>6} {'strategy':<9}"
        f" {'kind':<8} {'rmse':>10} {'first':>10} {'last':>10} {'share':>8} {'paper':>8}"
    )
    for query in document["queries"]:
        for candidate in query["candidates"]:
            for number in candidate["numbers"]:
                told = [_told(number[name]) for name in ("rmse", "stddev_first", "stddev_last")]
                lines.append(
                    f"{query['name']:<16} {query['cells']:>6} {candidate['strategy']:<9} {number['kind']:<8} "
                    f"{told[0]:>10} {told[1]:>10} {told[2]:>10} "
                    f"{sum(candidate['share'].values()):>8.4g} {candidate['paper_epsilon']:>8.4g}"
                )
            for family in candidate["families"]:
                if len(family["noise"]) > 1:
                    noise = ", ".join(f"{n['component']} {n['stddev']:.4g}" for n in family["noise"])
                    lines.append(f"{'':<16} standard deviation of one node's sums: {noise}")
    lines += [
        "",
        f"rmse, first, last: over {document['windows']} windows; `-` where it depends on the data.",
    ]
    return "\n".join(lines)


def _told(error: float | None) -> str:
    return "-" if error is None else f"{error:.4g}"
