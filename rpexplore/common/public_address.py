"""The address at which people reach a shared server: what its host, origin and path are."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from rpexplore.errors import RpexploreError

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
