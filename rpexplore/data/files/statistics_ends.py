"""Whether a file of Stata or SAS holds the records that it states: no more, and to its end.

pyreadstat reads as many records as a header states and passes over what follows, or, in transport
files of SAS, takes it for records. What it can tell by itself, that there are too few, is not
looked at here.
"""

import os
import re
import struct
from typing import BinaryIO

_OLDEST_STATA = 111  # of Stata 7 SE; before it types and value labels are written in other ways
_BYTES_OF_STATA = {251: 1, 252: 2, 253: 4, 254: 4, 255: 8}
_XPT_BLOCK = 80  # bytes, of which a transport file of SAS has a whole number
_XPT_HEADER = b"HEADER RECORD*******"
_STATA_END = b"</stata_dta>"
_SEARCHED = _XPT_BLOCK << 16  # bytes at a time


def ends_as_stated(file: BinaryIO, form: str, width: int) -> bool:
    """Whether nothing in a file tells of more records than its header does.

    Args:
        file: Of one of the formats of pyreadstat; of those of SPSS nothing is looked at.
        form: A key of `PACKAGES`.
        width: Bytes of all variables of a record; for transport files of SAS.
    """
    file.seek(0)
    if form == "xpt":
        return _xpt_ends(file, width)
    if form == "sas7bdat":
        return _sas_ends(file)
    if form == "dta":
        head = file.read(4096)
        return _stata_ends(file, head) if head[:1] == b"<" else _old_stata_ends(file, head)
    return True


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _xpt_ends(file: BinaryIO, width: int) -> bool:
    """One table; version 8 states the number of its records, the other one nothing.

    https://www.loc.gov/preservation/digital/formats/fdd/fdd000464.shtml
    """
    size = _size(file)
    if size % _XPT_BLOCK:
        return False
    while not (block := file.read(_XPT_BLOCK)).startswith(_XPT_HEADER + b"OBS"):
        if not block:
            return False
    start = file.tell()
    stated = block[48:63].strip()
    if block.startswith(_XPT_HEADER + b"OBSV8") and stated.isdigit():
        n_blank = size - start - int(stated) * width
        if not 0 <= n_blank < _XPT_BLOCK:
            return False
        file.seek(size - n_blank)
        return not file.read().strip(b" ")
    while blocks := file.read(_SEARCHED):
        place = blocks.find(_XPT_HEADER)
        while place >= 0:  # of another table, whose headers would be read as records
            if place % _XPT_BLOCK == 0:
                return False
            place = blocks.find(_XPT_HEADER, place + 1)
    return True


def _sas_ends(file: BinaryIO) -> bool:
    """Whether the pages of data have no more records than the row size subheader states.

    Not known of compressed files, whose records lie in other pages.
    https://cran.r-project.org/web/packages/sas7bdat/vignettes/sas7bdat.pdf
    """
    header = file.read(288)
    is_64, order = header[32:33] == b"3", "<" if header[37:38] == b"\1" else ">"
    shift = 4 if header[35:36] == b"3" else 0
    start, page_size = struct.unpack_from(f"{order}2I", header, 196 + shift)
    if start <= 0 or page_size <= 64:
        return False
    of_page, n_signature = (32, 8) if is_64 else (16, 4)
    signature = b"\xf7" * 4 + bytes(n_signature - 4)
    if order == ">":
        signature = signature[::-1]
    stated, on_mixed_page, n_records, has_mixed_page = None, 0, 0, False
    for place in range(start, _size(file) - page_size + 1, page_size):
        file.seek(place)
        page = file.read(page_size if stated is None else of_page + 8)
        kind, n_blocks = struct.unpack_from(f"{order}2H", page, of_page)
        if stated is None and (at := page.find(signature, of_page)) >= 0:
            number, *places = ("Q", 48, 120) if is_64 else ("I", 24, 60)
            stated, on_mixed_page = (
                struct.unpack_from(f"{order}{number}", page, at + one)[0] for one in places
            )
        if kind & 0x0F00 == 0x0100:
            n_records += n_blocks
        has_mixed_page |= kind & 0x0F00 == 0x0200
    if has_mixed_page and n_records:
        n_records += on_mixed_page  # it is full
    return stated is None or n_records <= stated


def _stata_ends(file: BinaryIO, head: bytes) -> bool:
    """Whether the file ends where its map says, with the mark of its end.

    https://www.stata.com/help.cgi?dta
    """
    size = _size(file)
    file.seek(max(size - 4 * len(_STATA_END), 0))
    if not file.read().rstrip(b"\0 \r\n").endswith(_STATA_END):
        return False
    order = ">" if b"<byteorder>MSF" in head else "<"
    found = re.search(rb"<map>", head)
    if found is None or len(head) < found.end() + 14 * 8:
        return False
    (end,) = struct.unpack_from(f"{order}q", head, found.end() + 13 * 8)
    if not len(_STATA_END) < end < size:
        return True
    file.seek(end - len(_STATA_END))
    ends_there = file.read(len(_STATA_END)) == _STATA_END
    return not (ends_there and file.read().strip(b"\0 \r\n"))


def _old_stata_ends(file: BinaryIO, head: bytes) -> bool:
    """Whether tables of value labels, and nothing else, follow the stated records.

    https://www.stata.com/help.cgi?dta_114
    """
    version, order = head[0], ">" if head[1] == 1 else "<"
    if version < _OLDEST_STATA:
        return True
    n_variables, n_records = struct.unpack_from(f"{order}Hi", head, 4)
    file.seek(109)
    # The code of a type: of numbers of five kinds, else the bytes of a text.
    width = sum(_BYTES_OF_STATA.get(kind, kind) for kind in file.read(n_variables))
    of_format = 49 if version >= 114 else 12
    file.seek((33 + of_format + 33 + 81) * n_variables + 2 * (n_variables + 1), os.SEEK_CUR)
    while True:  # characteristics
        kind, length = struct.unpack(f"{order}bi", file.read(5))
        if not kind and not length:
            break
        if length < 0:
            return False
        file.seek(length, os.SEEK_CUR)
    file.seek(width * n_records, os.SEEK_CUR)
    size = _size(file)
    while file.tell() < size:
        table = file.read(4 + 33 + 3 + 8)
        if len(table) < 48:
            return False
        length, n_labels, n_text = (
            struct.unpack_from(f"{order}i", table, at)[0] for at in (0, 40, 44)
        )
        if min(n_labels, n_text) < 0 or length != 8 + 8 * n_labels + n_text:
            return False
        file.seek(length - 8, os.SEEK_CUR)
    return file.tell() == size
