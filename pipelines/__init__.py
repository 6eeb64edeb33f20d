"""Specs, commands, and the publication of results."""

from transforms.common import needless_warning  # noqa: F401  # before anything of ours imports Beam
