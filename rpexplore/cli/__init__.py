"""The command line: the same verbs as the app."""

from rpexplore.cli.verbs import cli, main

__all__ = ["cli", "main"]
