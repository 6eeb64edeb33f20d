"""What a plan holds for, as JSON: what of a unit is protected, and what it may contribute."""

from privacy.constraint import AtMost, AtOnce, ByClass, Constraint, Within
from privacy.exact import Json, Members
from privacy.protection import EVERYTHING, Protection, Span


def protection_to_json(protects: Protection) -> Json:
    """What of a unit is protected.

    >>> protection_to_json(EVERYTHING)
    {'span': None}
    """
    if not isinstance(protects, Span):
        return {"span": None}
    return {"span": protects.length, **({"near": dict(protects.near)} if protects.near else {})}


def protection_from_json(members: Members) -> Protection:
    """What `protection_to_json` was given."""
    span = members.optional_count("span")
    near = members.of("near") if members.has("near") else Members({})
    distances = tuple((column, near.text(column)) for column in sorted(near.rest()))
    members.end()
    return EVERYTHING if span is None else Span(span, distances)


def constraint_to_json(constraint: Constraint) -> Json:
    """What a unit may contribute."""
    if isinstance(constraint, ByClass):
        classes = [{"class": name, **constraint_to_json(part)} for name, part in constraint.classes]
        return {"by": constraint.column, "classes": classes}
    if isinstance(constraint, Within):
        return {"within": constraint.span}
    if isinstance(constraint, AtOnce):
        renewed = {} if constraint.changes is None else {"changes": constraint.changes, "block": constraint.block}
        return {"at_once": constraint.entries, **renewed}
    return {"at_most": constraint.changes, "entries": constraint.entries}


def constraint_from_json(members: Members) -> Constraint:
    """What `constraint_to_json` was given."""
    if members.has("at_once"):
        with members.naming():
            renewed = {name: members.count(name) for name in ("changes", "block") if members.has(name)}
            at_once = AtOnce(members.count("at_once"), **renewed)
        members.end()
        return at_once
    if not members.has("by"):
        return _plain_from_json(members)
    column = members.text("by")
    classes = tuple((each.text("class"), _plain_from_json(each)) for each in members.each("classes"))
    members.end()
    with members.naming():
        return ByClass(column, classes)


def _plain_from_json(members: Members) -> AtMost | Within:
    with members.naming():
        plain = (
            Within(members.count("within"))
            if members.has("within")
            else AtMost(members.count("at_most"), members.optional_count("entries"))
        )
    members.end()
    return plain
