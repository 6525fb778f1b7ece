"""How much of a shared server one session, one account and all sessions together may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of a server that plans for a team.

    sessions          open at once; a further visitor is asked to try later
    upload_mb         of one file
    attributes        of a codebook
    categories        of all attributes of a codebook together
    tables            of a workload
    cells             of a workload's tables together
    areas             of a tree
    solve_seconds     of one plan, waiting for others not counted
    projects          saved for one account; those changed first go
    project_kb        of one saved project, without its areas
    """

    sessions: int = 60
    upload_mb: int = 10
    attributes: int = 200
    categories: int = 100_000
    tables: int = 200_000
    cells: int = 10**12
    areas: int = 200_000
    solve_seconds: int = 300
    projects: int = 50
    project_kb: int = 2_000
