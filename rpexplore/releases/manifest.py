"""The manifest of a release: what its folder holds, and what is guaranteed for it.

It is written last; a folder without one is no finished release. Size and SHA-256 of every file are
in it, and are compared when a release is opened.
"""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rpexplore.common.exact_numbers import exact_text
from rpexplore.errors import ReleaseError
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.measurement_file import MeasurementNote

CONFIDENCE = 0.95  # of the intervals in all files of a release

_NAME = "manifest.json"


def file_entry(folder: Path, path: str, **more: Any) -> dict[str, Any]:
    """What the manifest says of a file in the folder."""
    file = folder / path
    return {"path": path, "bytes": file.stat().st_size, "sha256": _sha256(file), **more}


def write_manifest(
    folder: Path,
    release_format: tuple[str, int],
    plan: ReleasePlan,
    note: MeasurementNote,
    files: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Write the manifest of a complete folder, and return it.

    Args:
        release_format: Its name and version.
        files: Their entries.
    """
    manifest = {
        "format": release_format[0],
        "format_version": release_format[1],
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "plan_sha256": plan.sha256,
        "rho": exact_text(plan.rho),
        "privacy_unit": plan.budget.unit,
        "guarantee": plan.guarantee,
        "noise": "discrete Gaussian, exact, from the operating system's entropy",
        "postprocessing": "none: unbiased linear reconstruction",
        "other_values": dict(note.unknown_values),
        "persons": note.person_rule,
        "interval_confidence": CONFIDENCE,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("rpexplore", "numpy", "pyarrow")},
        },
        "files": list(files),
    }
    with (folder / _NAME).open("w", encoding="utf-8", newline="\n") as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    return manifest


def checked_manifest(folder: Path, release_format: tuple[str, int]) -> dict[str, Any]:
    """The manifest of a release of this format, name and version.

    Raises `ReleaseError` if the folder is none, or if one of its files is not as it was written.
    """
    try:
        manifest = json.loads((folder / _NAME).read_text(encoding="utf-8"))
        stated_format = manifest["format"], manifest["format_version"]
        hashes = {entry["path"]: entry["sha256"] for entry in manifest["files"]}
        plan_sha256 = manifest["plan_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        raise ReleaseError(
            f"{str(folder)!r} is not a finished release: it has no readable {_NAME}."
        ) from None
    if stated_format != release_format:
        raise ReleaseError(
            f"{str(folder)!r} is not a release that can be read here (format "
            f"{stated_format[0]!r}, version {stated_format[1]!r}; it must be "
            f"{release_format[0]!r}, version {release_format[1]!r})."
        )
    for path, sha256 in {**hashes, "plan.json": plan_sha256}.items():
        file = folder / path
        if not file.is_file() or _sha256(file) != sha256:
            raise ReleaseError(
                f"The file {path!r} of the release {str(folder)!r} is missing or was changed "
                "since; restore it, or use the original folder."
            )
    return manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
