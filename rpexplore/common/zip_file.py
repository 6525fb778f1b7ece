"""Zip files in memory."""

import io
import zipfile
import zlib
from collections.abc import Mapping

ZIP = b"PK\x03\x04"  # what zip files begin with
# What zipfile raises for files that it cannot read.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # for a compression or an encryption that it does not know
    RuntimeError,  # for an entry with a password
    ValueError,
    OSError,
    EOFError,
)
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
