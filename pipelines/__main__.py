"""`python -m pipelines` is `slackwater`."""

import sys

from pipelines.cli import main

sys.exit(main())
