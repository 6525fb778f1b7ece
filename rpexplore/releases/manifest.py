"""The manifest of a release: what its folder holds, and what is guaranteed for it.

It is written last; a folder without one is no finished release. Size and SHA-256 of every file are
in it, and are compared when a release is opened.
"""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from rpexplore.common.exact_numbers import exact_text
from rpexplore.errors import ReleaseError
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.atomic_folder import write_to_disk
from rpexplore.releases.measurement_file import PLAN, MeasurementNote

CONFIDENCE = 0.95  # of the intervals in all files of a release

_NAME, _README = "manifest.json", "README.md"

PlanKind = TypeVar("PlanKind", bound=ReleasePlan)


@dataclass(frozen=True, eq=False)
class FinishedRelease(Generic[PlanKind]):
    """A finished release: its folder, plan and manifest. Holds noisy figures only.

    release_format  format and version that its manifest names
    plan_kind       the class of its plan
    """

    folder: Path
    plan: PlanKind
    manifest: Mapping[str, Any]

    release_format: ClassVar[tuple[str, int]]
    plan_kind: ClassVar[type[ReleasePlan]]

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a release folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)
        manifest = checked_folder(folder, cls.release_format, "a release")
        _check_files(folder, {PLAN: manifest.get("plan_sha256")})
        plan: Any = cls.plan_kind.load(folder / PLAN)
        return cls(folder, plan, manifest)

    @classmethod
    def write_manifest(
        cls,
        folder: Path,
        plan: PlanKind,
        note: MeasurementNote,
        readme: str,
        files: Sequence[Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Write README and manifest of a folder that has all other files; returns the manifest.

        files: their entries, without the plan's.
        """
        (folder / _README).write_text(readme, encoding="utf-8")
        facts = {
            "finished": now(),
            "plan_sha256": plan.sha256,
            "rho": exact_text(plan.rho),
            "privacy_unit": plan.budget.unit,
            "guarantee": plan.guarantee,
            "noise": "discrete Gaussian, exact, from the operating system's entropy",
            "postprocessing": "none: unbiased linear reconstruction",
            "unknown_values": dict(note.unknown_values),
            "records_per_person": note.person_rule,
        }
        files = [*files, file_entry(folder, PLAN), file_entry(folder, _README)]
        return save_manifest(folder, cls.release_format, facts, files)


def file_entry(folder: Path, path: str, **more: Any) -> dict[str, Any]:
    """What the manifest says of a file in the folder."""
    file = folder / path
    return {"path": path, "bytes": file.stat().st_size, "sha256": _sha256(file), **more}


def save_manifest(
    folder: Path,
    folder_format: tuple[str, int],
    facts: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Write a manifest with these facts and what is in every manifest, and return it.

    Args:
        folder_format: Name and version of the folder's format.
        facts: What is particular to this kind of folder.
        files: The entries of its files.
    """
    manifest = {
        "format": folder_format[0],
        "format_version": folder_format[1],
        **facts,
        "interval_confidence": CONFIDENCE,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("rpexplore", "numpy", "pyarrow")},
        },
        "files": list(files),
    }
    write_to_disk(folder / _NAME, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    return manifest


def manifest_sha256(folder: Path) -> str:
    """SHA-256 of a folder's manifest."""
    return _sha256(folder / _NAME)


def now() -> str:
    """The time, as manifests have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def checked_folder(folder: Path, folder_format: tuple[str, int], noun: str) -> dict[str, Any]:
    """The manifest of a folder of this format, which holds `noun`.

    Raises `ReleaseError` if the folder holds something else, or a file is not as it was written.
    """
    manifest = read_manifest(folder)
    try:
        stated_format = manifest["format"], manifest["format_version"]
        hashes = {str(entry["path"]): entry["sha256"] for entry in manifest["files"]}
    except (KeyError, TypeError):
        raise not_as_written(folder, noun) from None
    if stated_format != folder_format:
        raise ReleaseError(
            f"{str(folder)!r} does not hold {noun} that can be read here (format "
            f"{stated_format[0]!r}, version {stated_format[1]!r}; it must be "
            f"{folder_format[0]!r}, version {folder_format[1]!r})."
        )
    _check_files(folder, hashes)
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of any folder; raises `ReleaseError` if there is none that can be read."""
    try:
        manifest = json.loads((folder / _NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict):
        raise ReleaseError(
            f"{str(folder)!r} is not a finished release: it has no readable {_NAME}; check the "
            "path, and name the folder itself."
        )
    return manifest


def not_as_written(folder: Path, noun: str) -> ReleaseError:
    """What to raise for a folder whose manifest lacks something."""
    return ReleaseError(
        f"{str(folder)!r} does not hold {noun} as written; use the original folder."
    )


def _check_files(folder: Path, hashes: Mapping[str, str | None]) -> None:
    for path, sha256 in hashes.items():
        file = folder / path
        if not file.is_file() or _sha256(file) != sha256:
            raise ReleaseError(
                f"The file {path!r} of {str(folder)!r} is missing or was changed since; restore "
                "it, or use the original folder."
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
