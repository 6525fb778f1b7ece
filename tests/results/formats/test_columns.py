"""Names in exports, whatever attributes are called."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.result_schema import RELEASED, Schema
from rpexplore.releases.table_cells import label_columns, schema_of_cells
from rpexplore.results.formats.export_columns import attribute_names, columns_of_table

AWKWARD = ["sex", "SEX", "sex label", "sex_label", "value", "value_is", "§", "1", "年齢", "é", "é"]
NAME = st.one_of(st.sampled_from(AWKWARD), st.text(min_size=1).filter(str.strip))


@settings(max_examples=30)
@given(st.lists(NAME, unique=True, max_size=6))
def test_every_attribute_has_a_name_of_its_own_that_formats_take(attributes):
    names = attribute_names(attributes)
    used = [name for base in names.values() for name in (base, f"{base}_label")]
    used += ["value", "standard_error", "lower_95", "upper_95", "unbiased_value", "value_is"]
    assert list(names) == attributes
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) for name in used)
    assert len({name.lower() for name in used}) == len(used)


def test_names_keep_what_they_can():
    assert attribute_names(["marital status", "Île", "65+"]) == {
        "marital status": "marital_status",
        "Île": "Ile",
        "65+": "attribute_65",
    }


@pytest.mark.parametrize("labelled", [(), ("sex",), ("sex label",), ("b",), ("sex", "value", "b")])
def test_columns_are_told_by_their_roles_even_where_attributes_are_called_alike(labelled):
    attributes = ("sex", "sex label", "value", "b")
    labels = [
        label_columns(
            Attribute(name, Categories(("1", "2"), ("x", "y") if name in labelled else ()))
        )
        for name in attributes
    ]
    schema = Schema.of(schema_of_cells([one for named in labels for one, _ in named], RELEASED))
    titles = {"sex": "sex at length"}
    columns = columns_of_table(schema, attribute_names(attributes), titles)
    assert columns[0].meaning == "sex at length: what a row counts."
    assert [column.title for column in columns] == [one.name for one in schema.columns]
    assert [column.attribute for column in columns if column.role == "code"] == list(attributes)
    assert [column.attribute for column in columns if column.role == "label"] == [
        name for name in attributes if name in labelled
    ]
    assert [column.name for column in columns if column.is_number] == [one.name for one in RELEASED]
