"""Check that joined parts of a pipeline belong together, before any data is read.

The origin of a part's output is attached to it: Beam passes the PCollection object that one part returns to the next.
A part refuses input with another origin, and also the output of a step in between, which could undo what the privacy
claim rests on. So no pipeline can bound contributions in one way and claim another.
"""

from typing import TypeVar

import apache_beam as beam

Made = TypeVar("Made")
Collection = TypeVar("Collection", bound=beam.PCollection)


def giving(collection: Collection, made_from: object) -> Collection:
    """Return the collection with the origin of its part attached."""
    collection.made_from = made_from
    return collection


def given(collection: beam.PCollection, kind: type[Made]) -> Made | None:
    """Return the origin of the part that made a collection; None if another step made it."""
    made_from = getattr(collection, "made_from", None)
    return made_from if isinstance(made_from, kind) else None


def refuse_other(collection: beam.PCollection, expected: object, *, part: str, before: str) -> None:
    """Refuse a collection with another origin than expected.

    Args:
        collection: Input of the part.
        expected: Origin that it must have.
        part: Name of the part, for messages.
        before: Name of the part that must have made the collection.

    Raises:
        ValueError: The collection is not the direct output of `before`, or has another origin.
    """
    made_from = given(collection, type(expected))
    if made_from is None:
        raise ValueError(f"{part} takes what {before} gives, without a step in between; put other steps before Project")
    if made_from != expected:
        raise ValueError(f"{part} and {before} were made from different parts; make all of them from one Aggregation")
