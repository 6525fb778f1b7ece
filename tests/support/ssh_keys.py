"""SSH keys and certificates for tests, in folders of their own; never the user's."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MISSING = shutil.which("ssh-keygen") is None and "RPEXPLORE_REQUIRE_ENGINES" not in os.environ
requires_ssh_keygen = pytest.mark.skipif(MISSING, reason="ssh-keygen is not installed")


def new_key(folder: Path, name: str, *options: str) -> Path:
    """A key without a passphrase, called and commented by the name."""
    path = folder / name.partition("@")[0]
    ssh_keygen("-t", "ed25519", "-N", "", "-C", name, *options, "-f", str(path))
    return path


def with_keys(folder: Path, *names: str) -> Path:
    """The folder, with a key for each name."""
    for name in names:
        new_key(folder, name)
    return folder


def public(key: Path) -> str:
    """The public half as it stands in lists: its type and the key."""
    return " ".join(Path(f"{key}.pub").read_text().split()[:2])


def certified(authority: Path, key: Path, *options: str) -> Path:
    """The key with a certificate of an authority: the file that signs with it."""
    ssh_keygen("-s", str(authority), "-I", "test", *options, f"{key}.pub")
    return key.with_name(f"{key.name}-cert.pub")


def ssh_keygen(*arguments: str, text: str = "") -> str:
    """What ssh-keygen prints, which must succeed."""
    command = ["ssh-keygen", "-q", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
