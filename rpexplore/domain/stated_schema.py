"""Stated schemas: which Table Schema a JSON text is, holds or stands for, and what lists values."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from rpexplore.common.json_fields import loads, refusing
from rpexplore.common.numbers import shown, shown_few, whole_number
from rpexplore.common.text import is_text
from rpexplore.domain.codebook import DATES, WHOLE, check_number, has_name, is_range, missing_values
from rpexplore.domain.csvw_codebook import is_csvw, schemas_of_csvw
from rpexplore.errors import DomainError

DATA_PACKAGE, DATA_RESOURCE, CSVW = "Data Package", "Data Resource", "CSV on the Web"
PENDING = "(to be completed)"
"""The one value of an attribute whose values are given later."""
IMPOSSIBLE = "impossible"  # the property of a schema with the combinations that no record has


@dataclass(frozen=True)
class StatedSchema:
    """A Table Schema as it was read, and what kind of file it comes from, in words."""

    kind: str
    schema: Any

    @property
    def describes_tables(self) -> bool:
        """Whether it comes from a description of tables, whose columns need not list values."""
        return self.kind in (DATA_PACKAGE, DATA_RESOURCE, CSVW)

    @property
    def has_fields(self) -> bool:
        fields = self.schema.get("fields") if isinstance(self.schema, dict) else None
        return isinstance(fields, list) and bool(fields)

    def usable(self, pending: Collection[str] = (), *, leave_out: bool | None = None) -> Any:
        """The schema as it can be read.

        pending: fields whose values are given later, which may list none: they have the value
            `PENDING`, and those that stand for no answer
        leave_out: whether others that list none are left out; else if it describes tables
        """
        leave_out = self.describes_tables if leave_out is None else leave_out
        if not self.has_fields:
            return self.schema
        fields = []
        for field in self.schema["fields"]:
            if not _lacks_values(field):
                fields.append(field)
            elif field["name"] in pending:
                known = {key: field[key] for key in ("name", "title") if key in field}
                missing = {value: text for value, text in missing_values(field).items() if value}
                known["missingValues"] = [
                    {"value": value, "label": text or value} for value, text in missing.items()
                ]
                fields.append({**known, "constraints": {"enum": [PENDING]}})
            elif not leave_out:
                fields.append(field)
        return {**self.schema, "fields": fields}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks to read before it is used, in sentences."""
        listed = self.schema.get("missingValues", []) if isinstance(self.schema, dict) else []
        if not isinstance(listed, list):
            return ()
        items = [item.get("value") if isinstance(item, dict) else item for item in listed]
        texts = [item for item in items if isinstance(item, str) and item.strip()]
        if not texts:
            return ()
        return (
            f"Values that stand for no answer in the whole table ({shown_few(texts)}) are in no "
            "attribute; add them where records can have them, or have them counted as another "
            "value.",
        )

    @property
    def without_values(self) -> dict[str, str]:
        """{name: type} of the fields that do not say which values they can have."""
        return {one["name"]: str(one.get("type", "any")) for one in self._lacking}

    @property
    def missing(self) -> dict[str, dict[str, str]]:
        """{name: {value: label}} of these fields: what stands for no answer, as they say."""
        return {one["name"]: missing_values(one) for one in self._lacking}

    @property
    def _lacking(self) -> list[dict[str, Any]]:
        lacking = [field for field in self.schema["fields"] if _lacks_values(field)]
        check_number(len(lacking))
        return lacking


def schema_in_json(text: str, source: str, resource: str | None = None) -> StatedSchema:
    """The Table Schema that a JSON text is, holds or stands for; `source` is named in errors."""
    return chosen_schema(schemas_in_json(text, source), source, resource)


def schemas_in_json(text: str, source: str) -> dict[str, StatedSchema]:
    """The Table Schemas that a JSON text is, holds or stands for; `source` is named in errors.

    Those of a Data Package (datapackage.json) by the names of its tables, any other one, also that
    of a single table (a Data Resource), by "".
    Sizes, such as {"age": 32}, stand for the whole numbers from 0 on. Anything else is taken for a
    Table Schema.
    """
    with refusing(DomainError, f"{source} must be a codebook"):
        content = loads(text)
        if _is_package(content):
            return _schemas_in_package(content["resources"])
        if is_csvw(content):
            return {
                name: StatedSchema(CSVW, schema)
                for name, schema in schemas_of_csvw(content).items()
            }
        if _is_resource(content):
            return {"": StatedSchema(DATA_RESOURCE, content["schema"])}
        if _is_sizes(content):
            return {"": StatedSchema("sizes", _schema_of_sizes(content))}
    return {"": StatedSchema("Table Schema", content)}


def chosen_schema(
    schemas: Mapping[str, StatedSchema], source: str, resource: str | None = None
) -> StatedSchema:
    """The one of these schemas, or in a Data Package that of the table with this name."""
    if "" in schemas:
        if resource is not None:
            raise DomainError(f"{source} is no Data Package; name none of its tables.")
        return schemas[""]
    with refusing(DomainError, f"{source} must be a codebook"):
        return _chosen_in_package(schemas, resource)


def _is_package(content: Any) -> bool:
    if not isinstance(content, dict) or "fields" in content:
        return False
    return isinstance(content.get("resources"), list)


def _is_resource(content: Any) -> bool:
    """Whether it describes one table of a Data Package, by itself."""
    if not isinstance(content, dict) or "fields" in content:
        return False
    return isinstance(content.get("schema"), dict) and ("path" in content or "data" in content)


def _is_sizes(content: Any) -> bool:
    if not isinstance(content, dict) or "fields" in content:
        return False
    return bool(content) and all(whole_number(size) is not None for size in content.values())


def _schemas_in_package(resources: list[Any]) -> dict[str, StatedSchema]:
    """The Table Schemas in a Data Package, by the names of their resources, or else by numbers."""
    tables = [part for part in resources if isinstance(part, dict) and "schema" in part]
    names = [_name_of(table) for table in tables]
    given = set(names)
    free = (name for name in map("table {}".format, count(1)) if name not in given)
    schemas: dict[str, StatedSchema] = {}
    for name, table in zip(names, tables, strict=True):
        name = name or next(free)
        if name in schemas:
            raise DomainError(
                f"this Data Package holds two tables named {shown(name)!r}; rename one of them."
            )
        schemas[name] = StatedSchema(DATA_PACKAGE, table["schema"])
    return schemas


def _name_of(resource: dict[str, Any]) -> str:
    name = resource.get("name")
    return name if isinstance(name, str) and is_text(name) and name.strip() else ""


def _chosen_in_package(schemas: Mapping[str, StatedSchema], resource: str | None) -> StatedSchema:
    names = shown_few(list(schemas)) or "none"
    if resource is None and len(schemas) > 1:
        raise DomainError(
            f"this Data Package holds {len(schemas):,} tables, {names}; take one on the page "
            "Codebook, or with the option --resource of rpexplore schema."
        )
    if resource is not None and resource not in schemas:
        raise DomainError(f"this Data Package has no table {resource!r}; it has {names}.")
    stated = schemas[resource] if resource is not None else next(iter(schemas.values()), None)
    if stated is None or not isinstance(stated.schema, dict):
        raise DomainError(
            "a Data Package must hold the schema of a table itself, got none or the name of a file "
            "with it; give that file."
        )
    return stated


def _schema_of_sizes(sizes: dict[str, int]) -> dict[str, Any]:
    check_number(len(sizes))
    for name, size in sizes.items():
        if size < 1:
            raise DomainError(f"the size of {name!r} must be at least 1, got {size}")
    limits = {name: {"minimum": 0, "maximum": int(size) - 1} for name, size in sizes.items()}
    return {
        "fields": [
            {"name": name, "type": "integer", "constraints": constraints}
            for name, constraints in limits.items()
        ]
    }


def _lacks_values(field: Any) -> bool:
    """Whether a field does not say which values it can have, be they usable or not."""
    if not has_name(field) or field.keys() & {"bins", "bounds"} or field.get("type") == "boolean":
        return False
    constraints = field.get("constraints", {})
    if not isinstance(constraints, dict) or field.get("categories") is not None:
        return False
    has_limits = field.get("type", "integer") in (*WHOLE, *DATES) and is_range(constraints)
    return constraints.get("enum") is None and not has_limits
