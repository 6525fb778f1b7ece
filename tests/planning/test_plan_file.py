"""The plan file: exact round trips, the published schema, and refusals of what is no plan."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

import rpexplore as rp
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from tests.support.plan_schemas import PLAN_SCHEMA, PLAN_VALIDATOR
from tests.support.plan_texts import (
    changed,
    compact,
    content_of,
    flat,
    laid_out,
    other_layouts,
    sealed_like,
    unsealed,
)
from tests.support.strategies import budgets, described_domains, losses, workloads


def make_plan(loss=None):
    domain = rp.Domain(
        (
            rp.Attribute("sex", rp.Categories(("1", "2"), ("women", "men")), "Sex"),
            rp.Attribute("age", rp.Integers(0, 99, 5)),
            rp.Attribute("income", rp.Bins((0, 0.5, 10))),
            rp.Attribute("country", rp.Categories(("here",)), groups=(("world", "near"),)),
        )
    )
    workload = rp.Workload.of(
        domain,
        [(), ("sex", "age"), ("income", "country"), "sex"],
        weights=[1, 2, 0.1, 1e-5],
        targets=[None, 3, 2.5, 1],
    )
    budget = rp.Budget(epsilon=1, delta="1e-9", max_records_per_person=3)
    return plan_tables(workload, loss=loss or rp.MaxVariance(), budget=budget)


@pytest.fixture(scope="module")
def plan():
    return make_plan()


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(PLAN_SCHEMA)


@given(workloads() | workloads(described_domains()), losses(), budgets())
@settings(deadline=None, max_examples=60)
def test_round_trip_is_exact_and_valid(workload, loss, budget):
    plan = plan_tables(workload, loss=loss, budget=budget)
    again = TablePlan.parse(plan.text)
    assert again.workload.domain == workload.domain
    for ours, theirs in [
        (workload.members, again.workload.members),
        (workload.weights, again.workload.weights),
        (workload.targets, again.workload.targets),
        (plan.mean_variances, again.mean_variances),
        (plan.sigma_squared.digits, again.sigma_squared.digits),
        (plan.sigma_squared.exponents, again.sigma_squared.exponents),
        (plan.closure.members, again.closure.members),
        (plan.certificate.shadow_prices, again.certificate.shadow_prices),
    ]:
        np.testing.assert_array_equal(ours, theirs)
    for name in ("loss", "budget", "exact_privacy_cost", "loss_value", "version", "text", "sha256"):
        assert getattr(again, name) == getattr(plan, name)
    assert again.certificate.lower_bound == plan.certificate.lower_bound
    PLAN_VALIDATOR.validate(json.loads(plan.text))


def test_canonical_text(plan):
    text = plan.text
    assert text.endswith("}\n")
    assert "\r" not in text
    assert text.isascii() or text.encode().decode() == text
    assert hashlib.sha256(text.encode()).hexdigest() == plan.sha256
    assert list(json.loads(text)) == PLAN_SCHEMA["required"], "the schema lists the keys in order"
    assert text == laid_out(content_of(text)), "one table or residual a line"


def test_a_file_that_is_not_byte_for_byte_canonical_is_refused(plan, tmp_path):
    path = tmp_path / "p.json"
    for layout, text in other_layouts(plan.text).items():
        path.write_bytes(text.encode())
        with pytest.raises(PlanError, match=r"^p\.json must be byte for byte .*rpexplore rewrite"):
            TablePlan.load(path)
        assert TablePlan.parse(text, canonical=False).text == plan.text, layout


@pytest.mark.parametrize(
    ("path", "spelling"),
    [
        (("tables", 0, "weight"), "1"),
        (("tables", 0, "weight"), "1.00"),
        (("tables", 0, "weight"), "1e0"),
        (("domain", "fields", 2, "bins"), "[0.0,0.5,10]"),
        (("budget", "stated", "epsilon"), '"1.0"'),
        (("budget", "stated", "epsilon"), '"2/2"'),
    ],
)
def test_a_number_that_is_spelled_otherwise_is_refused(plan, path, spelling):
    text = laid_out(changed(plan.text, path, "spelled")).replace('"spelled"', spelling)
    text = sealed_like(text, plan.text)
    with pytest.raises(PlanError, match="must be byte for byte"):
        TablePlan.parse(text)
    assert TablePlan.parse(text, canonical=False).text == plan.text


def test_the_first_other_line_is_named(plan):
    lines = plan.text.split("\n")
    lines[7] += " "
    with pytest.raises(PlanError, match="and is not from line 8 on"):
        TablePlan.parse("\n".join(lines), "p.json")


def test_a_key_that_stands_twice_is_refused(plan):
    """The later one would count, and whoever reads the file could go by the earlier one."""
    twice = plan.text.replace('"privacy_cost"', '"privacy_cost":"0.001",\n"privacy_cost"', 1)
    in_a_row = plan.text.replace('"weight":1.0', '"weight":9.0,"weight":1.0', 1)
    for text, key in ((twice, "privacy_cost"), (in_a_row, "weight")):
        assert text != plan.text
        for canonical in (True, False):
            with pytest.raises(PlanError, match=f"the key {key} stands twice in an object"):
                TablePlan.parse(text, "p.json", canonical=canonical)


# ---- tampering that is refused when the file is read


CLASS_SCHEMA = PLAN_SCHEMA["$defs"]["tables"]["properties"]["classes"]["items"]
MISSING = [
    ("format",),
    ("format_version",),
    ("library_version",),
    ("domain",),
    ("loss",),
    ("budget",),
    ("privacy_cost",),
    ("certificate",),
    ("bases",),
    ("strategies",),
    ("tables",),
    ("cells",),
    ("residuals",),
    ("domain", "fields"),
    ("domain", "fields", 0, "name"),
    ("loss", "kind"),
    ("budget", "stated"),
    ("budget", "privacy_cost"),
    ("budget", "max_records_per_person"),
    ("certificate", "loss"),
    ("certificate", "lower_bound"),
    ("certificate", "gap"),
    ("certificate", "limit"),
    ("tables", 1, "attributes"),
    *(("tables", 1, key) for key in CLASS_SCHEMA["required"]),
    ("residuals", 1, "sigma_squared"),
]


@pytest.mark.parametrize("path", MISSING, ids=lambda path: ".".join(map(str, path)))
def test_missing_parts_are_refused_and_invalid(plan, path):
    content = changed(plan.text, path, ...)
    with pytest.raises(PlanError):
        TablePlan.parse(laid_out(content), "p.json")
    assert not PLAN_VALIDATOR.is_valid(compact(content))


# (path, value, what the message says beyond the file's name)
UNUSABLE = [
    (("format",), "other-plan", r'"format" must be "rpexplore-plan"'),
    (("format_version",), 3, r"format version 3, .* reads version 2; use the library version"),
    (("format_version",), 1, r"format version 1, which rpexplore 0\.1 reads, .* plan anew"),
    (("format_version",), "1", r"format version '1'"),
    (("format_version",), True, r"format version true"),
    (("library_version",), 3, r""),
    (("loss", "kind"), "median", r"loss must be one of .* got 'median'"),
    (("loss", "relative_to"), "size", r"got 'size'"),
    (("loss", "extra"), 1, r"extra"),
    (("budget", "stated", "epsilon"), "-1", r"epsilon must be positive, got -1"),
    (("budget", "stated", "epsilon"), 1, r""),
    (("budget", "privacy_cost"), "-5", r""),
    (("budget", "privacy_cost"), "0", r""),
    (("budget", "max_records_per_person"), 0, r"at least 1, got 0"),
    (("budget", "max_records_per_person"), 1.5, r"whole number"),
    (("privacy_cost",), "NaN", r"privacy_cost must be a finite number, got NaN"),
    (("privacy_cost",), "-1", r"privacy_cost"),
    (("privacy_cost",), 0.25, r"privacy_cost"),
    (("certificate", "loss"), "1", r""),
    (("certificate", "loss"), -1, r""),
    (("certificate", "lower_bound"), 0, r""),
    (("certificate", "lower_bound"), -1, r""),
    (("certificate", "lower_bound"), "nan", r""),
    (("certificate", "lower_bound"), True, r""),
    (("tables",), [], r"at least one table"),
    (("tables",), None, r""),
    (("tables", 1, "attributes"), 0, r"table's attributes must be a list, got 0"),
    (("tables", 1, "attributes"), ["sex"], r"attribute of a table must be a whole number"),
    (("tables", 1, "attributes"), [True], r"attribute of a table must be a whole number"),
    (("tables", 1, "attributes"), [-1], r"no attribute of a table -1: it must be from 0 to 3"),
    (("tables", 1, "attributes"), [4], r"no attribute of a table 4"),
    (("tables", 1, "attributes"), [2**70], r"no attribute of a table 1180591620717411303424"),
    (
        ("tables", 1),
        lambda row: row | {"attributes": [0, 0], "basis_index": [0, 0]},
        r"'sex' must stand once",
    ),
    (("tables", 1, "weight"), 0, r"weight of table \(sex\) must be .* got 0"),
    (("tables", 1, "weight"), -1, r"weight"),
    (("tables", 1, "weight"), "2", r""),
    (("tables", 1, "weight"), True, r""),
    (("tables", 1, "weight"), None, r"weight"),
    (("tables", 1, "target"), 0, r"target .* \(sex\) must be .* got 0"),
    (("tables", 1, "target"), "3", r""),
    (("tables", 1, "variance"), -1, r"variance must be"),
    (("tables", 1, "variance"), "3", r""),
    (("tables", 1, "shadow_price"), -0.1, r"shadow_price must be"),
    (("tables", 1, "shadow_price"), [1], r""),
    (("residuals", 1, "sigma_squared"), "-1", r"plain decimal text .* got '-1'"),
    (("residuals", 1, "sigma_squared"), "0", r"must be positive.* got '0'"),
    (("residuals", 1, "sigma_squared"), "0.000", r"must be positive.* got '0.000'"),
    (("residuals", 1, "sigma_squared"), "NaN", r"plain decimal text .* got 'NaN'"),
    (("residuals", 1, "sigma_squared"), "1e5", r"plain decimal text .* got '1e5'"),
    (("residuals", 1, "sigma_squared"), "Infinity", r"plain decimal text"),
    (("residuals", 1, "sigma_squared"), 12.5, r"plain decimal text .* got 12.5"),
    (("residuals", 1, "sigma_squared"), None, r"plain decimal text .* got null"),
    (("residuals", 1, "sigma_squared"), "٣", r""),
    (("domain", "fields", 1, "constraints", "maximum"), -1, r"'age'.* got 0 … -1"),
    (("domain", "fields", 0, "name"), "age", r"'age' is in the domain twice"),
    (("domain", "fields", 0, "title"), 5, r"'sex' must be a text, got 5"),
]


BEYOND_THE_SCHEMA = ("no attribute of a table 4", "no attribute of a table 11", "'age'")


@pytest.mark.parametrize(("path", "value", "message"), UNUSABLE)
def test_unusable_parts_are_refused(plan, path, value, message):
    content = changed(plan.text, path, value)
    with pytest.raises(PlanError, match=r"^p\.json .*" + message):
        TablePlan.parse(laid_out(content), "p.json")
    if not message.startswith(BEYOND_THE_SCHEMA):
        assert not PLAN_VALIDATOR.is_valid(compact(content)), "what the schema allows is read"


ROWS = {
    "last missing": lambda rows: rows.pop(),
    "last twice": lambda rows: rows.append(rows[-1]),
    "second twice": lambda rows: rows.insert(1, rows[1]),
    "out of order": lambda rows: rows.reverse(),
    "one more": lambda rows: rows.append({**rows[1], "attributes": [0, 1, 2]}),
    "other attributes": lambda rows: rows[-1].update(attributes=[1, 2]),
    "a single-valued attribute more": lambda rows: rows[1]["attributes"].append(3),
}


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_tables_missing_extra_twice_or_out_of_order(plan, change):
    content = content_of(plan.text)
    change(content["tables"])
    with pytest.raises(PlanError, match=r"^p\.json cannot be used: "):
        TablePlan.parse(laid_out(content), "p.json")


@pytest.mark.parametrize(
    ("change", "count"),
    [(lambda rows: rows.pop(0), 4), (lambda rows: rows.pop(), 4), (ROWS["last twice"], 6)],
)
def test_residuals_missing_or_extra(plan, change, count):
    content = content_of(plan.text)
    change(content["residuals"])
    with pytest.raises(PlanError, match=rf"there must be 5 residuals, got {count}"):
        TablePlan.parse(laid_out(content), "p.json")


def test_a_single_valued_attribute_is_no_residual(plan):
    content = flat(json.loads(plan.text))
    assert [attributes for attributes, _ in content["tables"]] == [[], [0], [0, 1], [2, 3]]
    assert len(content["residuals"]) == 5, "total, sex, age, income, sex × age"


@pytest.mark.parametrize(
    "text",
    ["", "plan", "{", "null", "[]", '"text"', "3", "{}", "\ufeff{}", "[" * 100_000, "9" * 5000],
    ids=[f"text{i}" for i in range(11)],
)
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(PlanError, match=r"^p\.json is not a plan file"):
        TablePlan.parse(text, "p.json")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_json_does_not_know_are_refused(plan, number):
    for key in ("weight", "variance", "shadow_price", "target"):
        line = f'"{key}":{content_of(plan.text)["tables"][2][key]!r}'
        assert line in plan.text
        with pytest.raises(PlanError, match=r"^p\.json "):
            TablePlan.parse(plan.text.replace(line, f'"{key}":{number}'), "p.json")


def test_truncated_files_are_refused(plan):
    for length in range(0, len(plan.text) - 2, 37):
        with pytest.raises(PlanError, match=r"^p\.json "):
            TablePlan.parse(plan.text[:length], "p.json")


@pytest.mark.parametrize("loss", [rp.SumOfVariances("sqrt"), rp.MaxVariance("target")])
def test_every_loss_is_kept(loss):
    domain = rp.Domain.from_sizes({"a": 2})
    workload = rp.Workload.of(domain, ["a"], targets=[1])
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(rho=1))
    assert TablePlan.parse(plan.text).loss == loss
    PLAN_VALIDATOR.validate(json.loads(plan.text))


def test_contents_that_do_not_fit_their_seal_are_refused(plan):
    """Nobody could recompute what a label says."""
    assert hashlib.sha256(unsealed(plan.text)[:-2].encode() + b"\n}\n").hexdigest() in plan.text
    for text in (
        plan.text.replace("women", "womem"),
        plan.text.replace('"sha256":"', '"sha256":"0', 1),
        laid_out(changed(plan.text, ("domain", "fields", 0, "title"), "Sexe")).replace("Sexe", "S"),
    ):
        for canonical in (True, False):
            with pytest.raises(ContradictionError, match=r"^p\.json was changed since it was wri"):
                TablePlan.parse(text, "p.json", canonical=canonical)
