"""JSON documents of designs, which devices and the collector use as long as the release runs, and their digests.

Each report carries the first digits of the digest, so that the collector can leave out reports of other designs. The
state of a device carries all of it, so that the device continues only with the design that it has accepted.
"""

from functools import lru_cache

from privacy.codec import Codec
from privacy.json_values import Json, digest_of
from privacy.local.design import Design

VERSION = 1

CODEC = Codec()

MARK = 16
"""Number of digits of the digest that a report carries."""


def design_to_json(design: Design) -> Json:
    """Return the JSON object of a design. Equal designs have equal objects."""
    return CODEC.dump(design, version=VERSION)


def design_from_json(document: object, place: str = "") -> Design:
    """Return the design from its JSON object.

    Raises:
        ValueError: the message names the place. Randomisers that do not cover the privacy parameters are refused too.

    >>> from privacy.local.bound import LocalBound
    >>> from privacy.local.mutation_space import MutationSpace
    >>> from privacy.local.candidates import tree
    >>> design = tree(MutationSpace(answers=2), LocalBound(at_most=1), windows=4, arity=2, height=2, epsilon=1.0)
    >>> design_from_json(design_to_json(design)) == design
    True
    """
    design: Design = CODEC.load(Design, document, version=VERSION, place=place)
    return design


@lru_cache(maxsize=64)
def digest(design: Design) -> str:
    """Return the SHA-256 of the design's JSON, in hexadecimal."""
    return digest_of(design_to_json(design))


def mark(design: Design) -> str:
    """Return the first digits of the digest, which reports carry."""
    return digest(design)[:MARK]
