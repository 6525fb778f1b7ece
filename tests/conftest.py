"""What holds for all tests."""

from hypothesis import settings

# How long an example takes says more about what else the machine is doing: `make test` runs as many
# tests at a time as there are processors.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
