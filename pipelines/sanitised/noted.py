"""Notes of sanitised records next to their specs, so that an edited spec does not sanitise a record a second time."""

import sys

from pipelines.sanitised.spec import SanitiseSpec
from pipelines.sanitised.store import Sanitised
from pipelines.store.notes import Note, keep, notes_for, refuse_begun, with_id
from pipelines.store.same_data import SameData, absolute, patterns_of
from pipelines.store.store import EpochStore
from pipelines.store.together import Record


def refuse_second(spec: SanitiseSpec) -> None:
    """Refuse a spec that has sanitised the same records with another private folder.

    Raises:
        RefusedError: The spec sanitised them into another private folder, or into one that is gone.
    """
    same = SameData(patterns_of(spec.source))
    before = {
        path: note.record
        for path, note in notes_for(spec.path)[0].items()
        if (note.kind, note.spec) == ("records", spec.path.name) and note.epochs and same.reads(note.data)
    }
    refuse_begun(
        spec.path, absolute(spec.output.private), before, "copy the spec to another name: then their epsilons add up"
    )


def keep_note(spec: SanitiseSpec, store: EpochStore[Sanitised]) -> None:
    """Keep a note of the release in the folder of its spec, or print why that is not possible.

    Raises:
        RefusedError: A note has more epochs than the private folder.
    """
    record = Record(
        release=spec.release,
        unit="record",
        public=absolute(spec.output.public),
        private=absolute(spec.output.private),
        epsilon=spec.record.epsilon,
        delta=spec.record.delta,
    )
    note = Note(
        kind="records",
        spec=spec.path.name,
        data=patterns_of(spec.source),
        epochs=len(store.commits()),
        record=with_id(record),
    )
    if problem := keep(spec.path, note):
        print(f"slackwater: {problem}", file=sys.stderr, flush=True)
