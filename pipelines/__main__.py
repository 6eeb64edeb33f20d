"""`python -m pipelines` is `slackwater`."""

import sys

from pipelines.cli import program

sys.exit(program())
