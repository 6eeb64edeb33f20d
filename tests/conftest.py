"""Settings for every test."""

from hypothesis import settings

# Times are the machine's, not the code's: a busy one would fail a good property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
