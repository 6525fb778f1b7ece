"""Folders whose manifest was edited by somebody who made its checksum anew."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rpexplore.common.json_fields import sealed_text

DAMAGES = ("changed", "longer", "missing", "emptied", "a folder")


def damage(path: Path, how: str) -> None:
    """Change a file in one of the ways of `DAMAGES`."""
    content = bytearray(path.read_bytes())
    path.unlink()
    if how == "changed":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif how == "longer":
        path.write_bytes(content + b"\n")
    elif how == "emptied":
        path.touch()
    elif how == "a folder":
        path.mkdir()


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a manifest says, and its checksum with it."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    change(manifest)
    path.write_text(sealed_text(manifest), "utf-8")


def reseal(folder: Path, name: str) -> None:
    """Have the manifest say that a file is as it is now."""
    content = (folder / name).read_bytes()
    stated = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit_manifest(
        folder,
        lambda manifest: [
            entry.update(stated) for entry in manifest["files"] if entry["path"] == name
        ],
    )
