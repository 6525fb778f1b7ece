"""Zip files in memory."""

import io
import zipfile
from collections.abc import Mapping

_MOMENT = (1980, 1, 1, 0, 0, 0)  # the earliest a zip file can say: the same plan, the same bytes


def zip_of(files: Mapping[str, bytes]) -> bytes:
    """The zip file of these; the same bytes every time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)
    return file.getvalue()
