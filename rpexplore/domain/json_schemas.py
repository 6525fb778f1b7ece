"""The Table Schema that a JSON text is, holds or stands for; which of its fields list values."""

from dataclasses import dataclass
from typing import Any

from rpexplore.common.exact_numbers import shown_few, whole_number
from rpexplore.common.json_fields import loads, refusing
from rpexplore.errors import DomainError

WHOLE = ("integer", "year")  # types whose minimum and maximum say all values


@dataclass(frozen=True)
class StatedSchema:
    """A Table Schema as it was read, and what kind of file it comes from, in words."""

    kind: str
    schema: Any

    @property
    def has_fields(self) -> bool:
        fields = self.schema.get("fields") if isinstance(self.schema, dict) else None
        return isinstance(fields, list) and bool(fields)

    @property
    def with_values(self) -> dict[str, Any]:
        """The schema without the fields that do not say which values they can have."""
        return {"fields": [one for one in self.schema["fields"] if not _lacks_values(one)]}

    @property
    def without_values(self) -> dict[str, str]:
        """{name: type} of the fields that do not say which values they can have."""
        lacking = filter(_lacks_values, self.schema["fields"])
        return {one["name"]: str(one.get("type", "any")) for one in lacking}


def schema_in_json(text: str, source: str, resource: str | None = None) -> StatedSchema:
    """The Table Schema that a JSON text is, holds or stands for; `source` is named in errors.

    In a Data Package (datapackage.json) it is that of its one table, or of the resource with this
    name; sizes, such as {"age": 32}, stand for the whole numbers from 0 on. Anything else is taken
    for a Table Schema.
    """
    with refusing(DomainError, f"{source} must be a codebook"):
        content = loads(text)
        if _is_package(content):
            schema = _schema_of_package(_schemas_in_package(content["resources"]), resource)
            return StatedSchema("Data Package", schema)
        if resource is not None:
            raise DomainError("it is no Data Package, so that none of its tables can be named.")
        if _is_sizes(content):
            return StatedSchema("sizes", _schema_of_sizes(content))
    return StatedSchema("Table Schema", content)


def tables_in_json(text: str, source: str) -> tuple[str, ...]:
    """The resources of a Data Package that are tables with a schema; () of another JSON text."""
    with refusing(DomainError, f"{source} must be a codebook"):
        content = loads(text)
        return tuple(_schemas_in_package(content["resources"])) if _is_package(content) else ()


def _is_package(content: Any) -> bool:
    if not isinstance(content, dict) or "fields" in content:
        return False
    return isinstance(content.get("resources"), list)


def _is_sizes(content: Any) -> bool:
    if not isinstance(content, dict) or "fields" in content:
        return False
    return bool(content) and all(whole_number(size) is not None for size in content.values())


def _schemas_in_package(resources: list[Any]) -> dict[str, Any]:
    """The Table Schemas in a Data Package, by the names of their resources."""
    tables = [part for part in resources if isinstance(part, dict) and "schema" in part]
    return {
        str(table.get("name", f"table {number}")): table["schema"]
        for number, table in enumerate(tables, start=1)
    }


def _schema_of_package(schemas: dict[str, Any], resource: str | None) -> dict[str, Any]:
    names = shown_few(list(schemas)) or "none"
    if resource is None and len(schemas) > 1:
        raise DomainError(
            f"this Data Package holds {len(schemas):,} tables, {names}; take one on the page "
            "Codebook, or with rpexplore schema --resource NAME --out FILE."
        )
    if resource is not None and resource not in schemas:
        raise DomainError(f"this Data Package has no table {resource!r}; it has {names}.")
    schema = schemas[resource] if resource is not None else next(iter(schemas.values()), None)
    if not isinstance(schema, dict):
        raise DomainError(
            "a Data Package must hold the schema of a table itself, got none or the name of a file "
            "with it; give that file."
        )
    return schema


def _schema_of_sizes(sizes: dict[str, int]) -> dict[str, Any]:
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


def has_name(field: Any) -> bool:
    return isinstance(field, dict) and isinstance(field.get("name"), str)


def _lacks_values(field: Any) -> bool:
    """Whether a field does not say which values it can have, be they usable or not."""
    if not has_name(field) or "bins" in field or field.get("type") == "boolean":
        return False
    constraints = field.get("constraints", {})
    if not isinstance(constraints, dict) or field.get("categories") is not None:
        return False
    is_range = field.get("type", "integer") in WHOLE and {"minimum", "maximum"} <= {*constraints}
    return constraints.get("enum") is None and not is_range
