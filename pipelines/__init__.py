"""Specs, the commands, and what they publish."""

from transforms.common import needless_warning  # noqa: F401  # before anything of ours imports Beam
