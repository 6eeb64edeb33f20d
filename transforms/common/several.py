"""How a transform is typed that takes or makes several collections."""

from typing import Any

Collections = Any
"""Collections by name or in a row. Beam's type hints know one collection only: of others it warns, and ignores them."""
