"""Convert a changelog of any format to Parquet files of one form, in a separate private folder.

    files -> ReadChangelog -> WriteParts -> unfinished/, moved up at the end
                 `-> diagnostics/

A failed run leaves only diagnostics/.
"""

from collections.abc import Sequence

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from pipelines.changelog.parquet_parts import WriteParts, begins_and_ends, keep
from pipelines.epochs.flags import begin_pipeline
from pipelines.epochs.input_quality import refuse_unusable
from pipelines.epochs.progress import Display
from transforms.common.errors import InputError
from transforms.sources.changelog import DEAD, READ, ReadChangelog
from transforms.sources.columns.layout import Layout
from transforms.sources.diagnostics import Diagnosis, WriteDiagnostics, diagnose
from transforms.sources.files.snapshot_paths import refuse_gaps
from transforms.sources.formats.table import FORMATS
from transforms.sources.snapshot_sizes import shrinks

DIAGNOSTICS = "diagnostics"


def convert(
    layout: Layout, *, folder: str, flags: Sequence[str], bad_rows: float = 0.0, shrink: float = 0.0
) -> tuple[list[str], Diagnosis]:
    """Write the changelog; return the paths of its files, at least one, and the counts of read rows.

    Args:
        layout: Files of the changelog, and the types of their columns.
        folder: The private folder.
        flags: Beam's pipeline options.
        bad_rows: Largest share of rows that may be unusable.
        shrink: Largest share of its rows that a snapshot may have lost since the one before.

    Raises:
        InputError: A file cannot be read, there are too many dead letters or no rows, or a snapshot is missing.
    """
    if layout.snapshots:
        refuse_gaps(layout.source, [file.path for file in layout.files], until=0)  # as far as there are any
    unfinished, diagnostics = FileSystems.join(folder, "unfinished"), FileSystems.join(folder, DIAGNOSTICS)
    owner = None if layout.owner is None else layout.source.owner
    try:
        with Display(layout), begin_pipeline(flags) as pipeline:
            read = pipeline | ReadChangelog(layout)
            exact = FORMATS[layout.source.format].exact
            changes = read["rows"]
            if layout.source.until is not None:
                changes |= "SplitIntervals" >> beam.FlatMap(begins_and_ends)
            changes | WriteParts(unfinished, key=layout.source.entry, owner=owner, exact=exact)
            (read[DEAD], read[READ]) | WriteDiagnostics(diagnostics)
        diagnosis = diagnose(diagnostics)
        shrunk = shrinks(layout, diagnostics, shrink) if layout.snapshots else []
        refuse_unusable(
            diagnosis,
            shrunk,
            share=bad_rows,
            key="--bad-rows",
            undone="no changelog was written",
            folder=diagnostics,
        )
        paths = keep(unfinished, folder)
    finally:
        if FileSystems.match([f"{unfinished}/*"])[0].metadata_list:
            FileSystems.delete([unfinished if "://" not in unfinished else f"{unfinished}/"])
    if not paths:
        raise InputError(f"{layout.files[0].path}: the changelog has no changes; there is nothing to write")
    return paths, diagnosis
