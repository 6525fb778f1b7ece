"""A provider of OpenID Connect on this machine, which believes whoever says who they are."""

import base64
import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

PEOPLE = ("ada", "ben")


class IdentityProvider:
    """One client, two people. `secret` is the client's; `issued` is the age of what it issues."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.client, self.secret = "client-4711", secrets.token_hex(16)
        self.seconds_ago = 0
        self._key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        self._codes: dict[str, dict[str, str]] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._metadata),
                Route("/keys", self._keys),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/end", self._end),
            ]
        )

    def login_file(self, **changed: str) -> str:
        """What a server that uses it has in its login file."""
        section = {
            "cookie_secret": secrets.token_hex(32),
            "client_id": self.client,
            "client_secret": self.secret,
            "server_metadata_url": f"{self.issuer}/.well-known/openid-configuration",
        } | changed
        return "[auth]\n" + "".join(f'{name} = "{value}"\n' for name, value in section.items())

    async def _metadata(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "end_session_endpoint": f"{self.issuer}/end",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self._key.as_dict(private=False)]})

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["client_id"] == self.client
        assert asked["code_challenge_method"] == "S256"
        person = asked.pop("person", None)
        if person is None:
            links = [
                f'<a href="?{urlencode({**asked, "person": name})}">{name}</a>' for name in PEOPLE
            ]
            return HTMLResponse(f"<h1>Who are you?</h1>{' '.join(links)}")
        code = secrets.token_hex(16)
        self._codes[code] = {**asked, "person": person}
        answer = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{answer}", 302)

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        asked = self._codes.pop(form["code"])
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() == asked["code_challenge"]
        basic = base64.b64encode(f"{self.client}:{self.secret}".encode()).decode()
        assert request.headers["authorization"] == f"Basic {basic}"
        assert form["redirect_uri"] == asked["redirect_uri"]
        now = int(time.time()) - self.seconds_ago
        claims = {
            "iss": self.issuer,
            "aud": self.client,
            "sub": f"subject of {asked['person']}",
            "name": f"{asked['person'].title()} <b>",
            "email": "team@agency.example",  # one for both: nobody is known by it
            "iat": now,
            "exp": int(time.time()) + 300,
            "nonce": asked["nonce"],
        }
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self._key)
        return JSONResponse(
            {"access_token": secrets.token_hex(8), "token_type": "Bearer", "id_token": token}
        )

    async def _end(self, request: Request) -> Response:
        return RedirectResponse(request.query_params["post_logout_redirect_uri"], 302)


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """One that runs in a thread, on a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        provider = IdentityProvider(listening.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(provider.app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.should_exit = True
            thread.join(10)
