"""SSH signatures of texts, made and checked by `ssh-keygen -Y`, as git does. No keys are kept.

`ssh-keygen` is run without a shell, in a private folder that is removed afterwards; nothing that
somebody else has written becomes more than the value of an option or a file's content. It is the
one of the system, and has a small environment of its own, so that no setting of a terminal changes
what it says: days between which keys are valid are judged in UTC.
"""

import base64
import binascii
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

from rpexplore.errors import ApprovalError

_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
_WIDTH = 70  # of a line of an armoured signature, as ssh-keygen writes it
# Where systems have it: Linux and macOS, then what people install beside, and NixOS.
_FOLDERS = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
_ENVIRONMENT = {"TZ": "UTC", "LC_ALL": "C", "PATH": _FOLDERS}
# What signing needs beside: the agent, a security key, and how to ask for a passphrase.
_TO_SIGN = (
    "HOME", "SSH_AUTH_SOCK", "SSH_SK_PROVIDER", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "DISPLAY",
    "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "TERM",
)  # fmt: skip
_SECONDS = 60  # by far more than checking takes
_LARGEST_KEY = 65_536  # bytes of a file of a key; a certificate has a few thousand
_GOOD = re.compile(r'Good "[^"]*" signature with \S+ key (SHA256:[0-9A-Za-z+/]{43})\n')
_LISTED = re.compile(r"\d+ (SHA256:[0-9A-Za-z+/]{43}) (.*) \([A-Z0-9-]+\)\n")
_LACKS = ("unknown option", "illegal option", "Unsupported operation")
_REASONS = {
    "key has expired": "had expired",
    "key is not yet valid": "is not valid yet",
    "not permitted for use in signature namespace": "may only sign for other purposes",
    "certificate not authorized": "has a certificate that is not for this name and day",
}


def sign(text: str, namespace: str, key: Path) -> str:
    """The armoured signature of a text by the key in a file.

    A public key has its private half in an agent, or beside it. A passphrase, or the touch of a
    security key, is asked for by ssh-keygen itself. Raises `ApprovalError`.
    """
    with tempfile.TemporaryDirectory(prefix="rpexplore-") as folder:
        path = Path(folder) / "text"
        path.write_bytes(text.encode())
        arguments = ["-q", "-Y", "sign", "-n", namespace, "-f", str(key.absolute()), str(path)]
        done = _run(arguments, asks=True)
        signature = path.with_name("text.sig")
        if done.returncode or not signature.is_file():
            raise ApprovalError(
                f"The key {str(key)!r} did not sign{_reason(done.stderr)}; check the key, its "
                "passphrase and the agent."
            )
        return canonical_signature(signature.read_text("ascii"))


def key_facts(key: Path) -> tuple[str, str]:
    """The fingerprint of the key in a file, private or public, and its comment ("" without one).

    Raises `ApprovalError` if there is no such key.
    """
    try:
        if key.stat().st_size > _LARGEST_KEY:
            raise ValueError
        done = _run(["-l", "-E", "sha256", "-f", str(key.absolute())])
        listed = _LISTED.fullmatch(done.stdout)
        if done.returncode or listed is None:
            raise ValueError
    except (OSError, ValueError):
        raise ApprovalError(
            f"{str(key)!r} is no SSH key that can be read; name a private key, or the public one "
            "(.pub) of a key that an agent holds."
        ) from None
    return listed[1], "" if listed[2] == "no comment" else listed[2]


def signing_key(text: str, signature: str, namespace: str) -> str | None:
    """The fingerprint of the key that has signed a text; None if the signature is not of it.

    Of a certificate it is that of its key. Whose key it is, is not said by this.
    """
    with _file(signature) as path:
        done = _run(["-Y", "check-novalidate", "-n", namespace, "-s", str(path)], text)
    good = _GOOD.fullmatch(done.stdout)
    return good[1] if good and not done.returncode else None


def refusal(text: str, signature: str, namespace: str, allowed_signers: str, name: str) -> str:
    """Why a list does not allow this signature in a name, to go on after "the key"; "" if it does.

    allowed_signers: the text of the list, as in ssh-keygen(1); its days are judged now, in UTC
    """
    with _file(signature) as path, _file(allowed_signers) as listed:
        arguments = ["-Y", "verify", "-n", namespace, "-s", str(path), "-f", str(listed)]
        done = _run([*arguments, "-I", name], text)
    if not done.returncode:
        return ""
    reasons = [reason for said, reason in _REASONS.items() if said in done.stderr]
    return reasons[-1] if reasons else "is not listed for that name"


def canonical_signature(armoured: str) -> str:
    """The signature in the form in which ssh-keygen writes it; raises `ValueError` for others."""
    lines = armoured.replace("\r", "")
    if not (lines.startswith(_BEGIN) and lines.endswith(_END)):
        raise ValueError("it is no armoured SSH signature")
    content = "".join(lines[len(_BEGIN) : -len(_END)].split("\n"))
    try:
        blob = base64.b64decode(content, validate=True)
    except binascii.Error:
        raise ValueError("it is no armoured SSH signature") from None
    plain = base64.b64encode(blob).decode()
    rows = [plain[start : start + _WIDTH] + "\n" for start in range(0, len(plain), _WIDTH)]
    return _BEGIN + "".join(rows) + _END


@contextmanager
def _file(text: str):
    """A file with this text, in a folder that nobody else can open."""
    with tempfile.TemporaryDirectory(prefix="rpexplore-") as folder:
        path = Path(folder) / "file"
        path.write_bytes(text.encode())
        yield path


def _run(
    arguments: Sequence[str], text: str | None = None, *, asks: bool = False
) -> "subprocess.CompletedProcess[str]":
    """The result of ssh-keygen; raises `ApprovalError` if it is missing or too old.

    asks: whether it may ask somebody at the terminal
    """
    # Of PATH, where systems have it elsewhere: Windows, say. A relative folder there is none.
    folders = [folder for folder in os.get_exec_path() if os.path.isabs(folder)]
    program = shutil.which("ssh-keygen", path=os.pathsep.join([*_FOLDERS.split(":"), *folders]))
    if program is None:
        raise ApprovalError(
            "Approvals are signed and checked by ssh-keygen, which is not installed here; install "
            "OpenSSH (8.2 or newer)."
        )
    # What it asks for, and that it waits for a touch, is said on standard error.
    is_answered = asks and sys.stdin.isatty() and sys.stderr.isatty()
    environment = {name: os.environ[name] for name in _TO_SIGN if asks and name in os.environ}
    if os.name == "nt":  # without it, no program finds the system's libraries
        environment |= {name: os.environ.get(name, "") for name in ("SYSTEMROOT", "USERPROFILE")}
    try:
        done = subprocess.run(
            [program, *arguments],
            env=environment | _ENVIRONMENT,
            input=(text or "").encode() if not is_answered else None,
            stdout=subprocess.PIPE,
            stderr=None if is_answered else subprocess.PIPE,
            timeout=None if asks else _SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise ApprovalError(
            f"{program!r}, which signs and checks approvals, cannot be run; mend OpenSSH on this "
            "machine."
        ) from None
    stdout, stderr = (
        stream.decode(errors="replace") for stream in (done.stdout, done.stderr or b"")
    )
    if done.returncode and any(lack in stderr for lack in _LACKS):
        raise ApprovalError(
            f"{program!r} is too old to sign and check approvals; install OpenSSH 8.2 or newer."
        )
    return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)


def _reason(stderr: str) -> str:
    """The last line of ssh-keygen's output, in brackets."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    said = "".join(char if char.isprintable() else " " for char in lines[-1]) if lines else ""
    return f" ({said[:200]})" if said else ""
