"""Entries of the registry of deployments, judged by its own schema."""

from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import pytest
import yaml

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.results.formats.registry_entry import (
    NEEDED,
    SECTORS,
    RegistryAnswers,
    load_release,
    registry_entry,
    registry_text,
)
from tests.releases import adaptive_run
from tests.releases.table_plan import CSV, QUERY_PLAN

# The registry's own, which is not part of this project: beside the repository where that is made.
SCHEMA = Path(__file__).parents[4] / "shared/published/registry-schema.yaml"
ANSWERS = RegistryAnswers(
    name="Atlas: persons & households",
    curators=("Statistics Office", "Ministry"),
    intended_use="Regional planning.",
    region="Nowhere",
    sector="Government",
    actors="The office sees the records, everybody the tables.",
    justification="ρ by the board.\n\nTables by demand.",
    authors=("A. Miller",),
)


@pytest.fixture(scope="session")
def schema() -> dict:
    if not SCHEMA.exists():
        pytest.skip("the registry's schema is not beside the repository")
    return yaml.safe_load(SCHEMA.read_text("utf-8"))


def tier_3_fields(schema: dict, path: str = "") -> set[str]:
    """The fields that the schema has for entries of any tier."""
    found = set()
    for name, field in schema["properties"].items():
        inner = tier_3_fields(field, f"{path}{name}.") if "properties" in field else set()
        found |= inner or {f"{path}{name}"}
    return found


def stated_fields(entry: dict, path: str = "") -> set[str]:
    found = set()
    for name, value in entry.items():
        found |= (
            stated_fields(value, f"{path}{name}.") if isinstance(value, dict) else {path + name}
        )
    return found


def test_an_entry_is_valid_and_has_every_field_that_is_known(schema, sources):
    folder = sources / "released"
    entry = yaml.safe_load(registry_text(folder, ANSWERS))
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(entry)
    assert entry == registry_entry(load_release(folder), ANSWERS)
    left_out = {"data_source_type_details", "sources"}  # for people, if there is more to say
    fields_of_schema = tier_3_fields(schema)
    assert len(fields_of_schema) > 30
    assert {name.split(".")[-1] for name in fields_of_schema - stated_fields(entry)} == left_out
    sectors = schema["properties"]["deployment"]["properties"]["basic"]["properties"]
    assert sectors["data_product_sector"]["enum"] == list(SECTORS)


def test_an_entry_says_what_the_release_guarantees_and_no_less(sources):
    plan = load_release(sources / "released").plan
    loss = registry_entry(load_release(sources / "released"), ANSWERS)["deployment"]["privacy_loss"]
    assert loss["privacy_parameters_details"] == plan.guarantee
    parameters = loss["privacy_parameters"]
    assert plan.rho <= parameters["rho"] < plan.rho * (1 + 1e-15)
    assert (parameters["epsilon"], parameters["delta"]) == (plan.epsilon("1e-6"), 1e-6)


@pytest.mark.parametrize("kind", ["queries", "adaptive"])
def test_releases_of_other_kinds_have_entries_as_well(schema, tmp_path, kind):
    if kind == "queries":
        (tmp_path / "records.csv").write_text(CSV, "utf-8")
    else:
        adaptive_run.write_records(tmp_path / "records.csv")
    plan = QUERY_PLAN if kind == "queries" else adaptive_run.PLAN
    rp.release(plan, tmp_path / "records.csv", tmp_path / "out")
    entry = yaml.safe_load(
        registry_text(tmp_path / "out", replace(ANSWERS, published="2026-01-31"))
    )
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(entry)
    assert entry["url_slug"] == "atlas-persons-households-2026"
    basic, loss = (entry["deployment"][part] for part in ("basic", "privacy_loss"))
    assert basic["publication_date"] == "2026-01-31"
    assert plan.accuracy_statement in basic["description"]
    assert loss["privacy_parameters_details"] == plan.guarantee


def test_what_is_missing_or_cannot_be_is_said(sources):
    needed = [field.name for field in fields(RegistryAnswers)][:8]
    assert RegistryAnswers().missing == needed == list(NEEDED)
    folder = sources / "released"
    with pytest.raises(ReleaseError, match=r"person knows: actors and authors are missing\."):
        registry_text(folder, replace(ANSWERS, actors=" ", authors=("",)))
    with pytest.raises(ReleaseError, match="authors must be text that files can hold"):
        registry_text(folder, replace(ANSWERS, authors=("A", "b\udcff")))
    with pytest.raises(ReleaseError, match=r"sector must be Technology, .* got 'Public'"):
        registry_text(folder, replace(ANSWERS, sector="Public"))
    with pytest.raises(ReleaseError, match="must be YYYY-MM-DD, got '20260131'"):
        registry_text(folder, replace(ANSWERS, published="20260131"))
    with pytest.raises(ReleaseError, match=r"made of releases; name a release itself \(released\)"):
        registry_text(sources / "smooth", ANSWERS)
