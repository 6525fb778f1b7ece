"""What a file is by its first bytes, where text is expected."""

_BEGINNINGS = {
    b"PK\x03\x04": "a spreadsheet or another ZIP file",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document",
    b"\x1f\x8b": "compressed by gzip",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF document",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x93NUMPY": "a NumPy matrix",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_PAGES = (b"<!doctype", b"<html", b"<?xml")

HEAD = 512
"""How many bytes `kind_beside_text` looks at."""


def kind_beside_text(head: bytes) -> str:
    """The kind of a file by its first bytes, in words; "" for what may be text in UTF-8."""
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGES):
        return "a web page or another marked-up document"
    return "no text" if head.count(0) > len(head) // 4 else ""
