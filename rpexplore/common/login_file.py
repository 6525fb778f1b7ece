"""Login file: how a shared server logs people in, by OpenID Connect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rpexplore.common.public_address import PublicAddress, is_this_machine
from rpexplore.common.secret_files import secret_toml
from rpexplore.errors import RpexploreError

DEFAULT_PROVIDER = "default"  # of one that has no section of its own
_SIGNS_OF_COOKIE_SECRET = 32
_OF_PROVIDER = ("client_id", "client_secret", "server_metadata_url")
_OPTIONS = ("client_kwargs",)
_OF_ALL = ("cookie_secret", "redirect_uri")


@dataclass(frozen=True)
class Login:
    """The providers that people can log in with.

    providers      by their names in the file, each with its client_id, client_secret,
                   server_metadata_url and client_kwargs; `DEFAULT_PROVIDER` is the name of one
                   without a name
    cookie_secret  what cookies are signed with
    redirect_uri   where providers send people back to
    """

    providers: Mapping[str, Mapping[str, Any]] = field(repr=False)
    cookie_secret: str = field(repr=False)
    redirect_uri: str

    @classmethod
    def read(cls, path: Path, address: PublicAddress) -> "Login":
        """The login of the server at an address, from a file for its owner alone.

        Raises `RpexploreError`, which quotes none of its values, for one that would not work.
        """
        try:
            content = secret_toml(path, "The login file", RpexploreError)
        except FileNotFoundError:
            raise RpexploreError(
                f"There is no login file {str(path)!r}; name another --login."
            ) from None
        where = f"The login file {str(path)!r}"
        auth = content.get("auth") if content else None
        if not isinstance(auth, dict) or set(content or ()) != {"auth"}:
            raise RpexploreError(
                f"{where} must be TOML with one table, [auth]; write cookie_secret, "
                f"{', '.join(_OF_PROVIDER)} under it."
            )
        secret = auth.get("cookie_secret")
        if not isinstance(secret, str) or len(secret) < _SIGNS_OF_COOKIE_SECRET:
            raise RpexploreError(
                f"{where} needs a cookie_secret of {_SIGNS_OF_COOKIE_SECRET} signs or more that "
                "nobody can guess; take what this prints: openssl rand -hex 32"
            )
        redirect = f"{address}oauth2callback"
        if auth.get("redirect_uri", redirect) != redirect:
            raise RpexploreError(
                f"{where} has another redirect_uri than the one that follows from --address, "
                f"{redirect}; leave it out, or correct one of the two."
            )
        sections = {name: value for name, value in auth.items() if isinstance(value, dict)}
        sections.pop("client_kwargs", None)
        own = {key: auth[key] for key in (*_OF_PROVIDER, *_OPTIONS) if key in auth}
        providers = sections | ({DEFAULT_PROVIDER: own} if own else {})
        unknown = set(auth) - {*_OF_ALL, *own, *sections}
        if unknown or not providers:
            named = f", and not {', '.join(sorted(unknown))}" if unknown else ""
            raise RpexploreError(
                f"{where} must name a provider: under [auth], or under [auth.NAME] for each of "
                f"several, it needs {', '.join(_OF_PROVIDER)}{named}."
            )
        for name, section in providers.items():
            _check_provider(f"{where}, provider {name!r},", name, section)
        return cls(providers, secret, redirect)


def _check_provider(where: str, name: str, section: Mapping[str, Any]) -> None:
    """Raise `RpexploreError` for what does not describe a provider."""
    if not name.isascii() or not name.isalnum():
        raise RpexploreError(f"{where} must have a name of letters and digits; rename it.")
    missing = [
        key for key in _OF_PROVIDER if not isinstance(section.get(key), str) or not section[key]
    ]
    if missing or set(section) - {*_OF_PROVIDER, *_OPTIONS}:
        raise RpexploreError(
            f"{where} must have {', '.join(_OF_PROVIDER)}, as texts, and may have client_kwargs; "
            + (f"add {', '.join(missing)}." if missing else "leave out what else is there.")
        )
    if not isinstance(section.get("client_kwargs", {}), dict):
        raise RpexploreError(f"{where} must have client_kwargs that are a table; write it as one.")
    metadata = urlsplit(section["server_metadata_url"])
    if metadata.scheme != "https" and not is_this_machine(metadata.hostname or ""):
        raise RpexploreError(
            f"{where} must have a server_metadata_url that begins with https://; take the one that "
            "its provider documents."
        )
