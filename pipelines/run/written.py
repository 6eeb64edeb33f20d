"""What each run writes again from the public files: tables of all numbers, and the page."""

import sys

from pipelines.published.latest import write_latest
from pipelines.report.operation import report
from pipelines.spec.load import Spec
from transforms.common.errors import SlackwaterError


def write_again(spec: Spec) -> None:
    """Write the tables and the page for which the spec asks. A page that fails does not fail the run."""
    write_latest(spec.output)
    if spec.output.report is None:
        return
    try:
        report(str(spec.path), output=spec.output.report)
    except Exception as error:
        why = str(error) if isinstance(error, SlackwaterError | OSError) else type(error).__name__
        print(
            f"slackwater: the windows are published, but not the page {spec.output.report}: {why}; write it with "
            f"`slackwater report {spec.path} -o {spec.output.report}`",
            file=sys.stderr,
            flush=True,
        )
