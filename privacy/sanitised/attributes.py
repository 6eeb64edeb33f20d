"""Attributes of a record: their values, their sanitisation, its cost and its error.

A record's attribute is encoded as an integer for each of its columns: steps of a number's grid, places in a list of
values, 1 and 0 for the elements of a set, steps for each point of a curve. Every record has a code, also one without a
value or with an impossible one: it counts as `missing`, which is public. So nothing shows which records these are.

Each attribute has a separate mechanism. A record of several attributes costs the sum of their epsilons and the sum of
their deltas (docs/proofs/sanitised.md), and any function of sanitised records costs nothing more.
"""

from privacy.sanitised.grid_attributes import Curve, Number
from privacy.sanitised.listed_attributes import Category, Subset

__all__ = ["Attribute", "Category", "Curve", "Number", "Subset"]

Attribute = Number | Category | Subset | Curve
