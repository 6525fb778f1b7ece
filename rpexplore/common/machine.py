"""Which machine a path is of, for what several machines share: the same after every restart."""

import hashlib
import os
import platform
import re
import sys
from contextlib import suppress
from pathlib import Path

from rpexplore.errors import LedgerError

VARIABLE = "RPEXPLORE_MACHINE"
_IDENTITIES = Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")
_MOUNTS = Path("/proc/self/mountinfo")
# File systems that several machines mount, as Linux calls them.
_SHARED = {
    "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "gfs2",
    "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "smb3", "smbfs",
}  # fmt: skip


def machine_names(path: Path) -> tuple[str, ...]:
    """Names of the machine that a path is on: the one in `VARIABLE`, then its own.

    It has both names, so that setting the variable later makes no other machine of it. Raises
    `LedgerError` where the same file could be of another machine tomorrow: in a container without
    an identity, and in a folder that several machines mount, unless the variable is set.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if named and not re.fullmatch(r"[\w.-]{1,100}", named):
        raise LedgerError(
            f"{VARIABLE} must be a name of letters, digits and signs of -_. alone, got {named!r}; "
            "correct it."
        )
    own = _identity()
    problem = ""
    best, kind = -1, ""
    with suppress(OSError):
        for line in _MOUNTS.read_text("utf-8", "surrogateescape").splitlines():
            # https://docs.kernel.org/filesystems/proc.html, 3.5
            before, _, behind = line.partition(" - ")
            mounted = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4])
            if path.is_relative_to(mounted) and len(mounted) >= best:
                best, kind = len(mounted), behind.split()[0]
    if kind in _SHARED:
        problem = f"{str(path)!r} lies in a folder that other machines can have as well"
    elif not own:
        problem = "this machine has no identity that is the same after a restart"
    if problem and not named:
        raise LedgerError(
            f"A ledger in a database knows files by their machine, and {problem}; name it in the "
            f"environment variable {VARIABLE}, the same on all that have these files at this path."
        )
    return tuple(filter(None, [named, own]))


def _identity() -> str:
    """A digest of the system's own number; its host name where no number is known; or ""."""
    for file in _IDENTITIES:
        with suppress(OSError, UnicodeDecodeError):
            number = file.read_text("ascii").strip()
            if re.fullmatch(r"[0-9a-f]{32}", number):
                # The number itself is not for others: see machine-id(5).
                return hashlib.sha256(f"rpexplore ledger {number}".encode()).hexdigest()[:16]
    # On Linux that is a container, whose host name changes.
    return "" if sys.platform == "linux" else re.sub(r"[^\w.-]", "-", platform.node())
