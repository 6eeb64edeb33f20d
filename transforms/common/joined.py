"""Parts of a pipeline that are joined check that they belong together, before any data is read.

What a part was made from goes along with what it gives: Beam hands the very PCollection that one part returns to the
next. A part that follows refuses what was made from something else, and also what comes from a step in between, which
could undo what the privacy claim rests on. So no pipeline can be built that bounds one way and claims another.
"""

from typing import TypeVar

import apache_beam as beam

Made = TypeVar("Made")
Collection = TypeVar("Collection", bound=beam.PCollection)


def giving(collection: Collection, made_from: object) -> Collection:
    """The collection, with what its part was made from."""
    collection.made_from = made_from
    return collection


def given(collection: beam.PCollection, kind: type[Made]) -> Made | None:
    """What the part that gave a collection was made from; None if it comes from elsewhere."""
    made_from = getattr(collection, "made_from", None)
    return made_from if isinstance(made_from, kind) else None


def refuse_other(collection: beam.PCollection, expected: object, *, part: str, before: str) -> None:
    """
    Raises:
        ValueError: the collection is not what `before` gives, as it is, or is made from something else.
    """
    made_from = given(collection, type(expected))
    if made_from is None:
        raise ValueError(f"{part} takes what {before} gives, as it is; put steps of your own before Project")
    if made_from != expected:
        raise ValueError(f"{part} and {before} were made from different parts; make all of them from one Aggregation")
