"""What `rpexplore app` tells the server that it starts, by one variable of the environment."""

import json
import os
from dataclasses import asdict, dataclass, field
from functools import cache

from rpexplore.common.limits import Limits
from rpexplore.common.public_address import PublicAddress

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
