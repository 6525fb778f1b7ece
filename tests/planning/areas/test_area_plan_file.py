"""The plan file of areas and the files beside it: round trips, refusals, false claims."""

import hashlib
import io
import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.numbers import exact_text
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_plan_file import name_of_file
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.plan import load_plan
from tests.planning.areas.test_area_planner import COST_1, OTHERS, area_workloads
from tests.support.plan_schemas import PLAN_SCHEMA, PLAN_VALIDATOR, is_valid
from tests.support.plan_texts import flat, laid_out_compact, replaced

PART = PLAN_SCHEMA["$defs"]["areas"]


def asked_of(targets=None) -> rp.AreaWorkload:
    """Uneven depth, tables that differ by level, one area asked for more."""
    tree = rp.AreaTree.from_columns({"region": [*"NNNS"], "town": ["1", "2", "ü", None]})
    ages = rp.Workload.of(OTHERS, [("age",), ("sex", "age")], weights=[1, 2], targets=targets)
    sexes = rp.Workload.of(OTHERS, [(), ("sex",)], targets=targets)
    asked = rp.AreaWorkload.of_levels(tree, {"region": ages, "town": sexes})
    return asked.with_areas(np.array([tree.find(("N", "2"))]), ages)


@pytest.fixture(scope="module")
def plans():
    """The plan for an average, and that for a largest ratio."""
    losses = {"sum": rp.SumOfVariances("cells"), "max": rp.MaxVariance(relative_to="target")}
    asked, budget = asked_of([3, 4]), rp.Budget(rho="1/3")
    return {
        name: plan_areas(asked, loss=loss, budget=budget, tolerance=1e-2)
        for name, loss in losses.items()
    }


@pytest.fixture
def saved(tmp_path, plans):
    """A folder with each of them in a folder of its own."""
    for name, plan in plans.items():
        (tmp_path / name).mkdir()
        plan.save(tmp_path / name / "plan.json")
    return tmp_path


def tampered(folder, change=None, columns=None, role="precisions"):
    """Change the content of a plan and the columns of a file beside it; every seal fits again."""
    path = folder / "plan.json"
    content = flat(json.loads(path.read_text("utf-8")))
    if columns is not None:
        name = name_of_file(role, content["files"][role])
        table = pq.read_table(folder / name)
        arrays = {column: table[column].to_numpy().copy() for column in table.column_names}
        columns(arrays)
        fields = [
            pa.field(column, pa.array(values).type, nullable=False)
            for column, values in arrays.items()
        ]
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pydict(arrays, pa.schema(fields)), sink)
        content["files"][role] = hashlib.sha256(sink.getvalue()).hexdigest()
        (folder / name_of_file(role, content["files"][role])).write_bytes(sink.getvalue())
    if change is not None:
        change(content)
    path.write_text(laid_out_compact(content), "utf-8")
    return path


@given(asked=area_workloads(), uniform=st.booleans(), persons=st.sampled_from([None, 3]))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_saved_is_what_is_loaded_and_holds(tmp_path, asked, uniform, persons):
    budget = rp.Budget(rho="0.1", max_records_per_person=persons)
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=budget, uniform_levels=uniform)
    plan.save(tmp_path / "plan.json")
    loaded = AreaPlan.load(tmp_path / "plan.json")
    assert (loaded.sha256, loaded.gap) == (plan.sha256, plan.gap)
    assert loaded.exact_privacy_cost == plan.exact_record_cost * budget.records_factor
    assert loaded.workload.tree.sha256 == asked.tree.sha256
    for residual in range(len(plan.closure)):
        for group in range(len(plan.groups)):
            assert loaded.exact_variance(residual, group) == plan.exact_variance(residual, group)
    verification = rp.verify(loaded)
    assert verification.holds, str(verification)
    assert [check.name for check in verification.checks if check.name != "levels"] == [
        "privacy cost", "answers", "loss", "optimality",
    ]  # fmt: skip
    PLAN_VALIDATOR.validate(json.loads(plan.text))
    assert hashlib.sha256((tmp_path / "plan.json").read_bytes()).hexdigest() == plan.sha256


def test_impossible_combinations_of_the_codebook_stay_with_the_plan(tmp_path):
    domain = rp.Domain(OTHERS.attributes, [{"age": "0", "sex": "1"}])
    tree = rp.AreaTree.from_columns({"town": ["1", "2"]})
    asked = rp.AreaWorkload.of_levels(tree, {"town": rp.Workload.of(domain, [("sex",)])})
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    plan.save(tmp_path / "plan.json")
    assert AreaPlan.load(tmp_path / "plan.json").domain.impossible == domain.impossible


def test_schema_lists_the_keys_in_order_and_every_one_is_needed(saved):
    path = saved / "max" / "plan.json"
    text = path.read_text("utf-8")
    assert list(json.loads(text)["parts"][0]) == PART["required"]
    needed = [(key,) for key in PART["required"]]
    needed += [("workloads", 0, "tables", 0, key) for key in ("attributes", "weight", "required")]
    needed += [("levels", 0, "areas"), ("residuals", 1, "factor"), ("files", "areas")]
    for place in needed:
        content = replaced(flat(json.loads(text)), place, ...)
        assert not is_valid(content)
        path.write_text(laid_out_compact(content), "utf-8")
        with pytest.raises(PlanError):
            load_plan(path)


def test_any_changed_byte_is_noticed(saved):
    folder = saved / "max"
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for position in range(0, len(content), max(1, len(content) // 25)):
            path.write_bytes(
                content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
            )
            with pytest.raises(PlanError):
                load_plan(folder / "plan.json")
        path.write_bytes(content)
    (areas,) = folder.glob("areas-*")
    areas.write_bytes(areas.read_bytes() + b"\0")
    with pytest.raises(ContradictionError, match=rf"the file {areas.name} beside it was changed"):
        load_plan(folder / "plan.json")
    areas.unlink()
    with pytest.raises(
        PlanError, match=rf"the file {areas.name} beside it.*; put it there"
    ) as lost:
        load_plan(folder / "plan.json")
    assert not isinstance(lost.value, ContradictionError)  # nothing false is claimed


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("uniform_levels",), 1, "uniform_levels must be true or false"),
        (
            ("loss",),
            rp.PNorm(2).to_json(),
            "must be sum_of_variances, max_variance, sum",
        ),
        (("files", "areas"), "../" * 21 + "x", "must be 64 hexadecimal digits"),
        (("unit",), "-1", "unit must be positive"),
        (("levels", 0, "areas"), 2, "one area at the top"),
        (("levels", 1, "areas"), 3, "must have 7 rows, got 6"),
        (("levels", 1, "name"), "all", "a name of its own"),
        (("workloads", 0, "areas"), 7, r"must be \[\d"),
        (("workloads", 0, "tables", 0, "attributes"), [2], "no attribute of a table 2"),
        (("workloads", 0, "tables", 0, "attributes"), [0, 1], "twice"),
        (("workloads", 0, "tables", 0, "weight"), 0, "weight"),
        (("residuals", 0, "factor"), 0, "a factor above 0"),
        (("residuals", 0, "profile"), 9, "order of first use"),
        (("residuals",), lambda rows: rows[:-1], "must be 4 residuals, got 3|order of first use"),
        (("certificate", "gap"), 0.5, "gap does not follow"),
    ],
)
def test_wrong_fields_are_refused(saved, place, value, message):
    path = tampered(saved / "max", lambda content: replaced(content, place, value))
    with pytest.raises(PlanError, match=message):
        load_plan(path)


def put(column, row, value):
    def change(arrays):
        arrays[column][row] = value

    return change


@pytest.mark.parametrize(
    ("columns", "role", "message"),
    [
        (put("parent", 3, 0), "areas", "Row 4 of the areas has the parent 0"),
        (put("parent", 1, 1), "areas", "Row 2 of the areas has the parent 1"),
        (put("code", 3, "2"), "areas", "Row 5 of the areas has the code '2'"),
        (put("code", 3, ""), "areas", "Row 4 of the areas has the code ''"),
        (lambda arrays: arrays.pop("code"), "areas", "must have the columns parent, code"),
        (put("areas", 0, 2), "precisions", "all those of the tree together"),
        (put("workload", 1, 9), "precisions", "a workload of the plan"),
        (put("workload", 0, 0), "precisions", "numbers of areas that workloads are asked for"),
        (put("multiple_0", 1, -1), "precisions", r"from 0 to 2\^40"),
        (put("price", 0, 0.1), "precisions", "areas that are divided must be 0"),
        (put("price", 2, np.nan), "precisions", "every price .* must be finite"),
        (put("table_price_1", 2, -0.1), "precisions", "every table_price .* at least 0"),
        (lambda arrays: arrays.update(price=arrays["areas"]), "precisions", "column price must be"),
    ],
)
def test_wrong_columns_are_refused(saved, columns, role, message):
    path = tampered(saved / "max", columns=columns, role=role)
    with pytest.raises(PlanError, match=message):
        load_plan(path)


def scaled(factor, *names):
    def change(arrays):
        for name in arrays:
            if name.startswith(names):
                arrays[name] = arrays[name] * factor

    return change


def nothing_is_better(content):
    content["certificate"]["lower_bound"] = content["certificate"]["loss"]
    content["certificate"]["gap"] = 0.0


def half_the_cost(content):
    content["privacy_cost"] = exact_text(Fraction(content["privacy_cost"]) / 2)


def half_the_noise(content):
    content["unit"] = exact_text(2 * Fraction(content["unit"]))


def smaller_loss(content):
    certificate = content["certificate"]
    certificate["loss"] = certificate["lower_bound"]
    certificate["gap"] = 0.0


@pytest.mark.parametrize("loss", ["sum", "max"])
@pytest.mark.parametrize(
    ("change", "columns", "failing"),
    [
        (half_the_cost, None, "privacy cost"),
        (half_the_noise, None, "privacy cost"),
        (smaller_loss, None, "loss"),
        (nothing_is_better, None, "optimality"),
        (nothing_is_better, scaled(2, "price"), "optimality"),
        (nothing_is_better, scaled(0, "price"), "optimality"),
        (lambda content: replaced(content, ("uniform_levels",), True), None, "levels"),
    ],
)
def test_false_claims_are_found(saved, loss, change, columns, failing):
    path = tampered(saved / loss, change, columns)
    verification = rp.verify(load_plan(path))
    assert failing in [check.name for check in verification.checks if not check.holds]


def test_largest_errors_need_prices_of_tables_that_sum_to_one(saved):
    path = tampered(saved / "max", nothing_is_better, scaled(2, "table_price"))
    checks = rp.verify(load_plan(path)).checks
    assert [check.name for check in checks if not check.holds] == ["optimality"]


def test_tables_that_nothing_measured_determines_are_found(saved):
    def unmeasured(arrays):
        multiples = [arrays[name] for name in arrays if name.startswith("multiple")]
        # The largest of all has to stay; which it is of equal ones is a matter of rounding.
        others = np.flatnonzero(np.max(multiples, axis=0) < np.max(multiples))
        for of_residual in multiples:
            of_residual[others[-1]] = 0

    path = tampered(saved / "sum", columns=unmeasured)
    checks = {check.name: check for check in rp.verify(load_plan(path)).checks}
    assert not checks["answers"].holds
    assert "area" in checks["answers"].finding


def test_names_of_areas_are_kept(tmp_path):
    asked = asked_of()
    names = pa.array(["Orsavia", "Norden", "Süden", "Alt", "Bel", "Cor"])
    tree = rp.AreaTree(
        asked.tree.levels, asked.tree.starts, asked.tree.parents, asked.tree.codes, names
    )
    named = rp.AreaWorkload(tree, asked.workloads, asked.kinds)
    plan_areas(named, loss=rp.SumOfVariances(), budget=COST_1).save(tmp_path / "plan.json")
    loaded = AreaPlan.load(tmp_path / "plan.json")
    assert loaded.workload.tree.names == names
    assert rp.verify(loaded).holds


def test_tables_by_level_are_those_of_single_areas(saved):
    """Means and extremes over areas, one by one, and prices that sum to 1."""
    for name in ("sum", "max"):
        plan = AreaPlan.load(saved / name / "plan.json")
        tables = plan.accuracy()
        assert tables["shadow_price"].sum() == pytest.approx(1)
        asked = plan.workload
        for row in tables.itertuples():
            variances = []
            for area in np.flatnonzero(asked.kinds >= 0).tolist():
                kind, group = asked.kinds[area], plan.groups.of_area[area]
                table = asked.workloads[kind].find(OTHERS.positions(row.attributes))
                level = asked.tree.levels[asked.tree.level_of[area]]
                column = np.flatnonzero(np.flatnonzero(plan.groups.kinds == kind) == group)
                if table is not None and level == row.level:
                    variances.append(float(plan.table_variances(kind)[table, column[0]]))
            assert row.standard_error**2 in [
                pytest.approx(np.mean(variances)),
                *map(pytest.approx, variances),  # one area is asked for another workload
            ]
            assert row.largest_standard_error**2 <= max(variances) * (1 + 1e-12)
