"""SSH keys, lists of allowed signers and certificates for tests; never the user's own."""

import subprocess
from pathlib import Path


def new_key(folder: Path, name: str, *options: str) -> Path:
    """A key without a passphrase, with the name as its comment."""
    path = folder / name.partition("@")[0]
    ssh_keygen("-t", "ed25519", "-N", "", "-C", name, *options, "-f", str(path))
    return path


def public(key: Path) -> str:
    """The public half as it stands in lists: its type and the key."""
    return " ".join(Path(f"{key}.pub").read_text().split()[:2])


def signers(*lines: str) -> str:
    """A list of allowed signers."""
    return "".join(f"{line}\n" for line in lines)


def ssh_keygen(*arguments: str, input: str = "") -> str:
    done = subprocess.run(
        ["ssh-keygen", "-q", *arguments], input=input, capture_output=True, text=True, check=True
    )
    return done.stdout
