"""Folders whose manifest was edited by somebody who made its checksum anew."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rpexplore.common.json_fields import sealed_text


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
