"""Notes of sanitised records next to their specs: a spec that is edited in place sanitises no record a second time."""

import sys

from pipelines.sanitised.spec import SanitiseSpec
from pipelines.sanitised.store import SanitisedStore
from pipelines.store.notes import Note, keep, notes_for, refuse_begun, with_id
from pipelines.store.same_data import SameData, absolute, patterns_of
from pipelines.store.together import Record


def refuse_second(spec: SanitiseSpec) -> None:
    """
    Raises:
        RefusedError: the spec sanitised the same records into another private folder, or into one that is gone.
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


def keep_note(spec: SanitiseSpec, store: SanitisedStore) -> None:
    """Keep a note of the release in the folder of its spec, or say why that is not possible.

    Raises:
        RefusedError: a note knows of more epochs than the private folder.
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
        epochs=len(store.open()),
        record=with_id(record),
    )
    if problem := keep(spec.path, note):
        print(f"slackwater: {problem}", file=sys.stderr, flush=True)
