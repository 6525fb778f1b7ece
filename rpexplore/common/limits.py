"""How much of a shared server one session, one account and all sessions together may take."""

import sys
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """The limits of a server that plans for a team.

    sessions       open at once; a further visitor is asked to try later
    upload_mb      of one file
    unpacked_mb    of one file, when it is read
    uploads_mb     that a session holds, together
    attributes     of a codebook
    categories     of all attributes of a codebook together
    tables         of a scenario
    cells          of a scenario's tables together
    areas          of a tree
    solve_seconds  of one piece of work, such as a plan; waiting for others does not count
    workloads      whose plans stay in memory for a session
    undo_steps     that a session can go back
    projects       saved for one account
    project_kb     of one saved project; its areas are saved apart
    account_mb     saved for one account, from which on it adds no areas
    """

    sessions: int = 60
    upload_mb: int = 10
    unpacked_mb: int = 100
    uploads_mb: int = 50
    attributes: int = 200
    categories: int = 100_000
    tables: int = 200_000
    cells: int = 10**12
    areas: int = 200_000
    solve_seconds: int = 300
    workloads: int = 4
    undo_steps: int = 30
    projects: int = 50
    project_kb: int = 2_000
    account_mb: int = 300


OWN_APP = Limits(
    **{field.name: sys.maxsize for field in fields(Limits)}
    | {"workloads": 12, "undo_steps": 100}  # as plans take memory
)
"""What one's own app takes of its owner's computer: as much as there is, but for its memory."""
