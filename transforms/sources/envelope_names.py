"""Formats that say themselves what other changelogs must be told: what a column means."""

from dataclasses import replace

from transforms.common.source import Source

ENVELOPES = ("debezium", "datastream")
"""Formats whose records hold states and, apart from them, what is to be known of the change."""

POSITION = "position"
"""Stands for the order of changes in Debezium's source: their positions in the database's log."""

OWN_ORDERS = (POSITION, "sort_keys")
"""Orders that the formats of `ENVELOPES` give, as texts that sort as they do."""

FINEST = "source.ts"
"""Stands for the finest of Debezium's times of the source that an event has."""


def named(source: Source) -> Source:
    """The source with the names that its format gives; of another format as it is.

    The columns of states have the prefixes `before.` and `after.`, whatever the format calls them.
    """
    if source.format == "debezium":
        time, order = source.time or FINEST, source.order or (POSITION,)
        return replace(source, time=time, before="before.", after="after.", order=order)
    if source.format == "datastream":
        return replace(source, time="source_timestamp", before=None, after="after.", order=("sort_keys",))
    return source
