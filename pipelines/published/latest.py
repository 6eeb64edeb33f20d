"""`output.latest`: one table of each query with all its published numbers, in `latest/` of the public folder.

The tables follow from the public files. A file is replaced as a whole, so that a dashboard reads the old table or the
new one.
"""

from io import BytesIO

from pipelines.published.release import Published
from pipelines.spec.load import Output
from pipelines.store.folder import folder_at
from transforms.common.output_formats import OUTPUT_FORMATS
from transforms.common.shown_tables import for_spreadsheets

LATEST = "latest"


def write_latest(output: Output) -> None:
    """Write the table of each query, if the spec asks for it and something is published.

    Raises:
        RefusedError: A public file is not what the manifest says.
    """
    if output.latest is None:
        return
    release, folder = Published(output.public), folder_at(output.public, private=False)
    format_ = OUTPUT_FORMATS[output.latest]
    for query in release.spec.queries:
        table, file = release.estimates(query).sort_by([("kind", "ascending"), ("window_end", "ascending")]), BytesIO()
        format_.write(for_spreadsheets(table) if format_.formulas else table, file)
        name, content = f"{LATEST}/{query.name}.{format_.name}", file.getvalue()
        with folder_at(output.private, private=True).lock():
            if folder.read(name) != content:
                folder.write(name, content)
