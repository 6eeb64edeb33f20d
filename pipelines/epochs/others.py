"""Report other releases about the same people, and keep a note of a release for them."""

import sys

from pipelines.spec.load import Spec
from pipelines.store.known_releases import keep_note, known, refuse_second, write_down
from pipelines.store.store import Store


def show_others(spec: Spec) -> None:
    """Show which other releases about the same people are known, before a release begins.

    Raises:
        RefusedError: The spec has begun another release of the same data.
    """
    found = known(spec)
    refuse_second(spec, found)
    if found.others or found.unread:
        print("\n".join(f"slackwater: {line}" for line in found.text().splitlines()), file=sys.stderr, flush=True)
    for folder in write_down(found) if found.others else ():
        print(f"slackwater: {folder}: cannot be written, so this release is not noted there", file=sys.stderr)


def note(spec: Spec, store: Store) -> None:
    """Keep a note of the release in the folder of its spec, or print why that is not possible."""
    store.refuse_unwritable()
    if problem := keep_note(spec, store):
        print(f"slackwater: {problem}", file=sys.stderr, flush=True)
