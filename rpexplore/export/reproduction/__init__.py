"""How a plan is made again: as a script, as commands."""
