"""Settings of a shared server: its address, and how much each session may take."""

import json
import os
import re
import sys
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from rpexplore.errors import RpexploreError

# ---- The address at which people reach a shared server: what its host, origin and path are.


_PATH = re.compile(r"(/[A-Za-z0-9_~.-]+)*")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class PublicAddress:
    """The parts of `https://plan.agency.example/plan`.

    scheme     https; http only for this machine
    host       as browsers send it: the name, and the port if it is not that of the scheme
    base_path  "/plan", or "" for the whole host
    """

    scheme: str
    host: str
    base_path: str

    @classmethod
    def parse(cls, text: str) -> "PublicAddress":
        """The address in a text. Raises `RpexploreError` for one that people could not use.

        >>> PublicAddress.parse("https://Plan.agency.example:443/plan/")
        PublicAddress(scheme='https', host='plan.agency.example', base_path='/plan')
        """
        try:
            parts = urlsplit(text.strip())
            port, name = parts.port, parts.hostname
        except ValueError:
            raise _refusal(text, "that can be read") from None
        if parts.scheme not in _DEFAULT_PORTS or not name or not name.isascii():
            raise _refusal(text, "with https:// and a host")
        if "@" in parts.netloc:  # a password may stand there, so it is not said again
            raise _refusal("one with a user", "without a user")
        if "?" in text or "#" in text:
            raise _refusal(text, "without a query or a fragment")
        path = parts.path.rstrip("/")
        if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
            raise _refusal(text, "whose path has only letters, digits and ~ . _ -")
        if parts.scheme == "http" and not is_this_machine(name):
            raise _refusal(
                text, "with https://: what people plan and their cookies cross a network"
            )
        host = f"[{name}]" if ":" in name else name
        if port not in (None, _DEFAULT_PORTS[parts.scheme]):
            host = f"{host}:{port}"
        return cls(parts.scheme, host, path)

    @property
    def origin(self) -> str:
        """The origin that a browser sends for its pages."""
        return f"{self.scheme}://{self.host}"

    @property
    def name(self) -> str:
        """The host without its port."""
        return urlsplit(self.origin).hostname or ""

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS."""
        return self.scheme == "https"

    def __str__(self) -> str:
        return f"{self.origin}{self.base_path}/"


def is_this_machine(host: str) -> bool:
    """Whether a host, as a name or a number, is this machine and no other reaches it.

    >>> is_this_machine("127.0.0.1"), is_this_machine("0.0.0.0")
    (True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refusal(text: str, wanted: str) -> RpexploreError:
    return RpexploreError(
        f"The public address must be one {wanted}, but it is {text!r}; give one such as "
        "--address https://plan.agency.example/plan"
    )


# ---- How much of a shared server one session, one account and all sessions together may take.


@dataclass(frozen=True)
class Limits:
    """The limits of a server that plans for a team.

    sessions       open at once; a further visitor is asked to try later
    upload_mb      of one file
    unpacked_mb    of one file, when it is read
    upload_values  of one file: texts, numbers, lists and keys
    uploads_mb     that a session holds, together
    message_mb     of what a browser says at once: all that is typed and chosen on a page
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
    unpacked_mb: int = 40
    upload_values: int = 2_000_000
    uploads_mb: int = 50
    message_mb: int = 4
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

# ---- What `rpexplore app` tells the server that it starts, by one variable of the environment.


_VARIABLE = "RPEXPLORE_SERVER"
# What Streamlit is told by the guard in front of it, whatever a client writes there: whose a
# connection is, so that nobody takes over a session of somebody else by its name. In a session it
# is an entry of `st.user`.
ACCOUNT_HEADER, ACCOUNT_OF_USER = "x-rpexplore-account", "account"


@dataclass(frozen=True)
class ServerSettings:
    """How a server of the app serves.

    planning_only: it is shared, and far from any records: no page reads a path, runs a release or
        shows a ledger
    address: where people reach it, as `PublicAddress` reads it; "" for one's own app
    login_file: what it logs people in by; "" where a browser is known by a cookie alone
    limits: of such a server
    """

    planning_only: bool = False
    address: str = ""
    login_file: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def public_address(self) -> PublicAddress:
        """The server's address. Raises `RpexploreError` for one's own app, which has none."""
        return PublicAddress.parse(self.address)

    @property
    def variable(self) -> dict[str, str]:
        """The variable of the environment that says so."""
        return {_VARIABLE: json.dumps(asdict(self))}


@cache
def server_settings() -> ServerSettings:
    """The settings of this process: those it was started with, else those of one's own app."""
    stated = json.loads(os.environ.get(_VARIABLE, "{}"))
    return ServerSettings(**{**stated, "limits": Limits(**stated.get("limits", {}))})
