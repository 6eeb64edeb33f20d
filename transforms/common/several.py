"""Type of a transform's input or output that is several collections."""

from typing import Any

Collections = Any
"""Collections by name or in sequence. Beam's type hints know one collection only; for others it warns and ignores them.
"""
