"""The shape of a key that nobody lists: `{discover: true}`."""

from typing import Annotated, Any

from pydantic import PlainValidator

from pipelines.spec.errors import wrong
from pipelines.spec.fields import Section
from pipelines.spec.words import show
from transforms.aggregation.discovered_key import DiscoveredKey


def _true(value: Any) -> bool:
    if value is not True:
        raise wrong(f"expected true, or a list of cells in place of the section, not {show(value)}")
    return True


class DiscoverSection(Section):
    """A key whose values are found privately."""

    discover: Annotated[bool, PlainValidator(_true)]

    def key(self) -> DiscoveredKey:
        """Return the key."""
        return DiscoveredKey()
