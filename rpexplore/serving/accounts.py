"""Whose projects a browser of a shared server may see, and how people log in to it."""

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import quote

import streamlit as st  # tells whose a session is, by what the guard put into its headers
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Scope

from rpexplore.common.server import ACCOUNT_OF_USER, PublicAddress, server_settings
from rpexplore.common.server_files import Login, log_event

# ---- Whose projects a browser of a shared server may see: those of a login, or of its own cookie.
#
# The guard in front of Streamlit finds out the account of each request by a cookie that scripts
# cannot read: the one that `login` signs, or, on a server without login, one that nobody can guess.
# It says so to the session in a header that nobody else can write. An account's projects lie in a
# folder of its own, so that nothing that anybody types, uploads or opens leads to another's.


BROWSER_COOKIE = "rpexplore-browser"
HOURS_LOGGED_IN = 12
_NAMES = ("name", "preferred_username", "email")  # that a provider may have for somebody
_BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes
_SECONDS_AHEAD = 300  # that a provider's clock may be

_OF_SESSION = "account of this session"

# Logins that were logged out. None is forgotten, as a clock may go back to when one still held: a
# hundred a day are 5 MB in a year.
_ended: set[str] = set()


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
        key = st.session_state.setdefault(_OF_SESSION, secrets.token_urlsafe())
        return Account(_digest("session", key))
    found = Account.of_header(told) if isinstance(told, str) else None
    if found is None or not found.holds:
        st.stop()
    return found


def log_out(account: Account) -> None:
    """End a login everywhere, also where a browser has kept its cookie."""
    _ended.add(account.login)


def _digest(*parts: str) -> str:
    """A name of a folder that tells nothing of who it is for; no two lists of texts share one."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


# ---- The way to a provider of OpenID Connect and back, in front of Streamlit, with Authlib's
# client.
#
# `st.login` could only be called by a session of the app, and whoever has none would have to be
# given one first. So nothing of Streamlit's login is used: who is logged in is in a cookie of this
# module, signed for this server's address.


LOG_IN, LOG_OUT, CALLBACK = "/log-in", "/log-out", "/oauth2callback"
_COOKIE = "rpexplore-login"
_ASKED = "asked"  # in the cookie: the provider that somebody was sent to
_CLAIMS = ("iss", "sub", "iat", "nonce")
_MOST_SIGNS = 100  # of a name; a browser drops a cookie of more than 4 KB
# The code flow with PKCE; a provider that does not know PKCE takes no notice of it (RFC 6749, 3.1).
_OPTIONS = {
    "scope": "openid email profile",
    "prompt": "select_account",
    "code_challenge_method": "S256",
}


class LoginRoutes:
    """What is served of logging in and out, and who is logged in."""

    def __init__(self, login: Login, address: PublicAddress) -> None:
        from authlib.integrations.starlette_client import OAuth  # only where it is installed

        self.paths = (LOG_IN, LOG_OUT, CALLBACK)
        self.providers = tuple(login.providers)
        self._login, self._address = login, address
        self._clients = OAuth()
        for name, section in login.providers.items():
            options = _OPTIONS | section.get("client_kwargs", {})
            self._clients.register(name, **{**section, "client_kwargs": options})
        self._id_tokens: dict[str, tuple[float, str]] = {}  # by logins: when they end, and theirs

    def signed(self, app: ASGIApp) -> ASGIApp:
        """`app`, which finds in `scope["session"]` what the browser's signed cookie holds."""
        secret = self._login.cookie_secret.encode()
        return SessionMiddleware(
            app,
            # Of another address no cookie counts, should two servers have one secret.
            hmac.new(secret, str(self._address).encode(), hashlib.sha256).hexdigest(),
            session_cookie=_COOKIE,
            max_age=HOURS_LOGGED_IN * 3600,
            path=self._address.base_path or "/",
            same_site="lax",
            https_only=self._address.is_secure,
        )

    def account(self, scope: Scope) -> Account | None:
        """Who is logged in; None if nobody is, or not any more."""
        return account_of_claims(scope["session"])

    def address_of(self, provider: str) -> str:
        """Where somebody goes who wants to log in with a provider."""
        return f"{self._address.base_path}{LOG_IN}?provider={quote(provider)}"

    async def answer(self, path: str, request: Request) -> Response | None:
        """The answer to one of `paths`; None for a provider that there is not."""
        if path == LOG_IN:
            answer = await self._to_provider(request)
        else:
            answer = await (self._log_out if path == LOG_OUT else self._from_provider)(request)
        if answer is not None:
            answer.headers["cache-control"] = "no-store"
        return answer

    async def _to_provider(self, request: Request) -> Response | None:
        name = request.query_params.get("provider")
        if name not in self.providers:
            return None
        request.session[_ASKED] = name
        try:
            client = self._clients.create_client(name)
            return await client.authorize_redirect(request, self._login.redirect_uri)
        except Exception as error:  # of the network, or of what the provider says
            return self._failed(error)

    async def _from_provider(self, request: Request) -> Response:
        """Log in whom the provider has sent back; whoever is logged in already stays so."""
        session, home = request.session, RedirectResponse(str(self._address), 302)
        provider = session.get(_ASKED)
        if provider not in self.providers:
            return home  # nobody was sent there, or a provider sends back who has logged out
        try:
            token = await self._clients.create_client(provider).authorize_access_token(request)
        except Exception as error:
            return self._failed(error)
        claims: dict[str, Any] = token.get("userinfo") or {}
        account = account_of_claims(claims)
        session.clear()
        if account is not None:
            session.update({claim: claims[claim] for claim in _CLAIMS if claim in claims})
            session.update(name=account.name[:_MOST_SIGNS], provider=provider)
            now = time.time()
            self._id_tokens = {
                login: held for login, held in self._id_tokens.items() if held[0] > now
            } | {account.login: (account.ends, token["id_token"])}
            log_event("logged in")
        return home

    async def _log_out(self, request: Request) -> Response:
        """Log out here, and at the provider if that has an address for it."""
        account, provider = self.account(request.scope), request.session.get("provider")
        request.session.clear()
        home = RedirectResponse(str(self._address), 302)
        if account is None:
            return home
        log_out(account)
        log_event("logged out")
        _, hint = self._id_tokens.pop(account.login, (0.0, None))  # none after a restart
        if provider not in self.providers:  # any more
            return home
        client = self._clients.create_client(provider)
        try:
            if not (await client.load_server_metadata()).get("end_session_endpoint"):
                return home
            end = await client.create_logout_url(
                self._login.redirect_uri, hint, client_id=client.client_id
            )
        except Exception as error:
            return self._failed(error)
        return RedirectResponse(end["url"], 302)

    def _failed(self, error: Exception) -> Response:
        """Back to the beginning; the log says why, without the provider's text."""
        log_event("login failed", type=type(error).__name__)
        return RedirectResponse(str(self._address), 302)
