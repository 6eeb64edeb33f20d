"""A changelog of any format as Parquet files of one form, in a private folder of its own.

    files -> ReadChangelog -> WriteParts -> unfinished/, moved up once all is well
                 `-> diagnostics/

Nothing but diagnostics/ is left of a run that failed.
"""

from apache_beam.io.filesystems import FileSystems

from pipelines.changelog.parquet_parts import WriteParts, keep
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
    layout: Layout, *, folder: str, flags: list[str], bad_rows: float = 0.0, shrink: float = 0.0
) -> tuple[list[str], Diagnosis]:
    """Write the changelog; the paths of its files, at least one, and what was read.

    Args:
        bad_rows: share of rows that may be unusable.
        shrink: share of its rows that a snapshot may have lost since the one before.

    Raises:
        InputError: a file that cannot be read, more dead letters than allowed, no row at all, or snapshots with a gap.
    """
    if layout.snapshots:
        refuse_gaps(layout.source, [file.path for file in layout.files], until=0)  # as far as there are any
    unfinished, diagnostics = FileSystems.join(folder, "unfinished"), FileSystems.join(folder, DIAGNOSTICS)
    owner = None if layout.owner is None else layout.source.owner
    try:
        with Display(layout), begin_pipeline(flags) as pipeline:
            read = pipeline | ReadChangelog(layout)
            exact = FORMATS[layout.source.format].exact
            read["rows"] | WriteParts(unfinished, key=layout.source.entry, owner=owner, exact=exact)
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
