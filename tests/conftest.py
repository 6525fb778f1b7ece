"""What holds for all tests."""

import os

from hypothesis import settings

# How long an example takes says more about what else the machine is doing: `make test` runs as many
# tests at a time as there are processors.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# What an earlier version found, and kept in the user's folder, is no proof of this one.
os.environ["RPEXPLORE_NO_CACHE"] = "1"
