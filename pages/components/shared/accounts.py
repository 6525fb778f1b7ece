"""Whose projects a browser of a shared server may see: those of a login, or of its own cookie.

The guard in front of Streamlit finds out the account of each request by a cookie that scripts
cannot read: the one that `login` signs, or, on a server without login, one that nobody can guess.
It says so to the session in a header that nobody else can write. An account's projects lie in a
folder of its own, so that nothing that anybody types, uploads or opens leads to another's.
"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import streamlit as st

from rpexplore.common.server_settings import ACCOUNT_OF_USER, server_settings
from rpexplore.scenarios.autosave import Autosaves

BROWSER_COOKIE = "rpexplore-browser"
HOURS_LOGGED_IN = 12
_NAMES = ("name", "preferred_username", "email")  # that a provider may have for somebody
_BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes
_SECONDS_AHEAD = 300  # that a provider's clock may be

_OF_SESSION = "account of this session"

_ended: dict[str, float] = {}  # logins that were logged out, and when they end by themselves
_lock = threading.Lock()


@dataclass(frozen=True)
class Account:
    """Somebody who may use the server, or a browser that may.

    folder  the name of the folder of the projects
    name    who is logged in, for the screen alone; "" without login
    login   tells this login from others of the account; "" without login
    ends    until when it holds, in seconds since 1970
    """

    folder: str
    name: str = ""
    login: str = ""
    ends: float = float("inf")

    @property
    def holds(self) -> bool:
        """Whether it has neither ended nor been logged out."""
        return time.time() < self.ends and self.login not in _ended

    @property
    def header(self) -> str:
        """All of it in signs of ASCII, as the guard tells a session of Streamlit's."""
        return json.dumps(astuple(self))

    @classmethod
    def of_header(cls, text: str) -> "Account":
        return cls(*json.loads(text))


def account_of_browser(cookies: Mapping[str, str]) -> Account | None:
    """The account of a browser on a server without login; None if it has no key yet."""
    key = cookies.get(BROWSER_COOKIE, "")
    if not isinstance(key, str) or not _BROWSER_KEY.fullmatch(key):
        return None
    return Account(_digest("browser", key))


def account_of_claims(claims: Mapping[str, Any]) -> Account | None:
    """The account of what a provider said of somebody; None if that is nobody, or not any more.

    By issuer and subject, which a provider gives to one person for good; an e-mail address may go
    on to another.
    """
    issuer, subject, issued = (claims.get(claim) for claim in ("iss", "sub", "iat"))
    if not (isinstance(issuer, str) and issuer and isinstance(subject, str) and subject):
        return None
    if not isinstance(issued, int | float) or issued > time.time() + _SECONDS_AHEAD:
        return None
    names = (claims.get(claim) for claim in _NAMES)
    account = Account(
        _digest("login", issuer, subject),
        next((name for name in names if isinstance(name, str) and name), "Logged in"),
        _digest("one login", issuer, subject, str(issued), str(claims.get("nonce"))),
        issued + HOURS_LOGGED_IN * 3600,
    )
    return account if account.holds else None


def account() -> Account:
    """The account of this session on a shared server; nobody without one gets as far as this."""
    # Not by `st.context`, which has nothing any more of a browser that has just gone.
    told = st.user.get(ACCOUNT_OF_USER)
    if told is None and not server_settings().login_file:  # the test runner has no guard
        key = st.session_state.setdefault(_OF_SESSION, Autosaves.new_key())
        return Account(_digest("session", key))
    found = Account.of_header(told) if isinstance(told, str) else None
    if found is None or not found.holds:
        st.stop()
    return found


def log_out(account: Account) -> None:
    """End a login everywhere, also where a browser has kept its cookie."""
    with _lock:
        _ended.update({account.login: account.ends})
        for login in [login for login, ends in _ended.items() if ends < time.time()]:
            del _ended[login]


def _digest(*parts: str) -> str:
    """A name of a folder that tells nothing of who it is for; no two lists of texts share one."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
