"""Area codebook: a codebook of which one attribute is a tree of areas, in a file beside it.

The field of that attribute names the file, how to read it, and its SHA-256:

    {"name": "block", "areas": {"path": "blocks.csv", "sha256": "…", "levels": ["state", "block"]}}

with `levels`, `separator` and `lengths` as in `AreaTree.from_file`, each if needed, and `recode`,
`{"block": {"old": "new"}}`, as in `AreaTree.with_recodes`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown_value
from rpexplore.domain.area_file import tree_of_file
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.codebook import has_name
from rpexplore.domain.domain import Domain
from rpexplore.domain.recodes import recode_of_field
from rpexplore.domain.stated_schema import schema_in_json
from rpexplore.errors import DomainError

AREAS = "areas"
_KEYS = ("path", "sha256", "levels", "separator", "lengths", "recode")


@dataclass(frozen=True, eq=False)
class AreaCodebook:
    """The areas that records lie in, and their other attributes.

    name    of the attribute whose values are areas
    tree    the areas
    domain  the other attributes
    """

    name: str
    tree: AreaTree
    domain: Domain

    @classmethod
    def load(cls, path: str | Path) -> "AreaCodebook":
        """Read a JSON codebook with one attribute of areas, and the file of areas beside it.

        Raises:
            DomainError: For a codebook without such an attribute or with several, a file that is
                missing or not the one that the codebook names, or one that is no tree.
        """
        path = Path(path)
        content = file_bytes(path, f"The codebook {str(path)!r}", DomainError)

        def beside(name: str) -> bytes:
            return file_bytes(path.parent / name, f"the file of areas {name!r}", DomainError)

        return cls._of(content, path.name, beside)

    @classmethod
    def from_files(
        cls, content: bytes, filename: str, beside: Mapping[str, bytes]
    ) -> "AreaCodebook":
        """The same of what files hold: the codebook, and those beside it by their names."""

        def content_of(name: str) -> bytes:
            if name not in beside:
                raise DomainError(
                    f"the file of areas {name!r} is missing; give it together with the codebook."
                )
            return beside[name]

        return cls._of(content, filename, content_of)

    @classmethod
    def _of(cls, content: bytes, filename: str, beside: Callable[[str], bytes]) -> "AreaCodebook":
        text = utf8_text(content, f"The codebook {filename}", DomainError)
        fields, stated = fields_of_codebook(text, filename), schema_in_json(text, filename).schema
        of_areas = [field for field in fields if has_areas(field)]
        if len(of_areas) != 1:
            names = ", ".join(repr(field["name"]) for field in of_areas) or "none"
            raise DomainError(
                f'{filename} must have one attribute with "areas", got {names}; areas are planned '
                "for along one tree."
            )
        (field,) = of_areas
        with refusing(DomainError, f"{filename}, attribute {field['name']!r}"):
            tree = _tree(field[AREAS], beside)
        others = [other for other in fields if other is not field]
        if not others:
            raise DomainError(f"{filename} has no attribute beside the areas; add one.")
        with refusing(DomainError, filename):
            domain = Domain.from_schema({**stated, "fields": others})
        return cls(field["name"], tree, domain)


def names_areas(path: str | Path) -> bool:
    """Whether a codebook is JSON with an attribute of areas; raises `DomainError` for no file."""
    content = file_bytes(path, f"The codebook {str(path)!r}", DomainError)
    if b'"areas"' not in content:  # neither another format nor another codebook is read for it
        return False
    name = Path(path).name
    text = utf8_text(content, f"The codebook {name}", DomainError)
    return any(has_areas(field) for field in fields_of_codebook(text, name))


def fields_of_codebook(text: str, source: str) -> list[Any]:
    """The fields of a JSON codebook."""
    schema = schema_in_json(text, source).schema
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        raise DomainError(f'{source} must hold an object with a list "fields".')
    return fields


def has_areas(field: Any) -> bool:
    """Whether a field of a codebook is an attribute of areas."""
    return has_name(field) and AREAS in field


def _tree(stated: Any, beside: Callable[[str], bytes]) -> AreaTree:
    if not isinstance(stated, dict) or not set(stated) <= set(_KEYS):
        raise DomainError(
            '"areas" must be an object with path, sha256 and, if needed, levels, separator, '
            f"lengths and recode, got {shown_value(stated)}."
        )
    name = stated.get("path")
    if not isinstance(name, str) or not name or Path(name).name != name or "\\" in name:
        raise DomainError(
            f"the path must be the name of a file beside the codebook, got {shown_value(name)}."
        )
    content = beside(name)
    sha256 = hashlib.sha256(content).hexdigest()
    if stated.get("sha256") is None:
        raise DomainError(
            f"it must state the SHA-256 of {name}, so that no other file of areas is taken for it; "
            f'state "sha256": {json.dumps(sha256)}.'
        )
    if stated["sha256"] != sha256:
        raise DomainError(
            f"the file {name} is not the one that the codebook was written for: its SHA-256 is not "
            f'the one stated; get the right file, or state "sha256": {json.dumps(sha256)}.'
        )
    levels, lengths = stated.get("levels", []), stated.get("lengths", [])
    for key, kind in (("levels", str), ("lengths", int)):
        listed = stated.get(key, [])
        if not isinstance(listed, list) or not all(type(item) is kind for item in listed):
            raise DomainError(f"the {key} must be a list, got {shown_value(listed)}.")
    separator = stated.get("separator")
    if separator is not None and not isinstance(separator, str):
        raise DomainError(f"the separator must be a text, got {shown_value(separator)}.")
    tree = tree_of_file(content, name, levels=levels, separator=separator, lengths=lengths)
    recodes = stated.get("recode", {})
    if not isinstance(recodes, dict):
        raise DomainError(
            'the recode must be an object such as {"town": {"old": "new"}}, got '
            f"{shown_value(recodes)}."
        )
    return tree.with_recodes({level: recode_of_field(recode) for level, recode in recodes.items()})
