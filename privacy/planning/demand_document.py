"""What one query asks of a plan, as JSON and back: a part of the plan's document (privacy.planning.document)."""

from privacy.adaptive.choice import AdaptiveChoice
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis
from privacy.exact import Json, Members
from privacy.measure import KINDS as MEASURES
from privacy.measure import Component, Measure
from privacy.planning.demand import Demand
from privacy.series import KINDS as SERIES
from privacy.series import Series
from privacy.strategies.choice import Choice


def demand_to_json(demand: Demand) -> Json:
    """What is asked; how it is released stands beside it."""
    return {
        "name": demand.name,
        "measure": _measure_to_json(demand.measure),
        "cells": demand.cells,
        **({"axes": [{"cells": axis.cells, "ordered": axis.ordered} for axis in demand.axes]} if demand.axes else {}),
        "series": [series_to_json(series) for series in demand.series],
        "weight": float(demand.weight).hex(),
        "expected": None if demand.expected is None else float(demand.expected).hex(),
        "choice": demand.choice.to_json(),
        **({"over": demand.over.to_json()} if demand.over.asks else {}),
        **({"apart": list(demand.apart)} if demand.apart else {}),
    }


def demand_from_json(members: Members, adaptive: AdaptiveChoice | None) -> Demand:
    """As `demand_to_json` writes it; members that say how it is released are left to the caller.

    Raises:
        ValueError: a member is missing or wrong, or this version of the program puts the numbers on another grid.
    """
    return Demand(
        name=members.text("name"),
        measure=_measure_from_json(members.of("measure")),
        cells=members.count("cells"),
        series=tuple(series_from_json(series) for series in members.each("series")),
        weight=members.number("weight"),
        expected=members.optional_number("expected"),
        choice=_choice_from_json(members.of("choice")),
        adaptive=adaptive,
        axes=tuple(_axis_from_json(axis) for axis in members.each("axes")) if members.has("axes") else (),
        over=CellChoice.from_json(members.of("over")) if members.has("over") else CellChoice(),
        apart=members.counts("apart") if members.has("apart") else (),
    )


def series_to_json(series: Series) -> Json:
    return {"kind": series.kind, "width": series.width, "every": series.every}


def series_from_json(members: Members) -> Series:
    with members.naming():
        series = Series(kind=members.word("kind", SERIES), width=members.count("width"), every=members.count("every"))
    members.end()
    return series


def _measure_to_json(measure: Measure) -> Json:
    return {
        "kind": measure.kind,
        "low": float(measure.low).hex(),
        "high": float(measure.high).hex(),
        "fine": measure.fine,
        "components": [
            {"name": c.name, "grid": float(c.grid).hex(), "low": c.low, "high": c.high} for c in measure.components
        ],
    }


def _axis_from_json(members: Members) -> Axis:
    with members.naming():
        axis = Axis(cells=members.count("cells"), ordered=members.flag("ordered"))
    members.end()
    return axis


def _measure_from_json(members: Members) -> Measure:
    kind = members.word("kind", MEASURES)
    with members.naming():
        measure = Measure(kind=kind, low=members.number("low"), high=members.number("high"), fine=members.flag("fine"))
    if tuple(_component_from_json(component) for component in members.each("components")) != measure.components:
        raise ValueError(
            f"{members.place('components')}: sums so far are on another grid than this version of the program has for "
            "them; go on with the version that began the release"
        )
    members.end()
    return measure


def _component_from_json(members: Members) -> Component:
    component = Component(
        name=members.text("name"), grid=members.number("grid"), low=members.count("low"), high=members.count("high")
    )
    members.end()
    return component


def _choice_from_json(members: Members) -> Choice:
    choice = Choice.from_json(members)
    members.end()
    return choice
