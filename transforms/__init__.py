"""Beam transforms over Arrow tables."""

from transforms.common import needless_warning  # noqa: F401  # before anything of ours imports Beam
