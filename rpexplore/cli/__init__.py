"""The command line: the same verbs as the app."""

from rpexplore.cli.main import cli, main

__all__ = ["cli", "main"]
