"""Amounts in codebooks: public limits, decimals and unit, and what does not go with them."""

import pytest

import rpexplore as rp
from rpexplore.domain.values import coefficients
from rpexplore.errors import DomainError

INCOME = {"name": "income", "type": "number", "bounds": [0, 200000], "unit": "EUR", "decimals": 0}


def values(**field):
    stated = rp.Domain.from_schema({"fields": [INCOME | field]})["income"].values
    assert isinstance(stated, rp.Amounts)
    return stated


def test_a_codebook_states_amounts_and_keeps_them():
    missing = [{"value": "", "label": "not stated"}, {"value": "-9", "label": "refused"}]
    stated = values(bounds=["-0.10", 99.95], decimals=2, missingValues=missing)
    assert (stated.lowest, stated.highest, stated.range_in_steps) == (-10, 9995, 10005)
    assert stated.missing_codes == {"": 2, "-9": 3}
    domain = rp.Domain((rp.Attribute("income", stated, "Monthly income"),))
    assert rp.Domain.from_schema(domain.to_schema()) == domain
    # As a text: 0.1 in JSON is no decimal.
    assert domain.to_schema()["fields"][0]["bounds"] == ["-0.10", "99.95"]
    assert values(decimals=0) == rp.Amounts(0, 200_000, unit="EUR")
    assert values().clamping == "amounts below 0 EUR count as 0, those above 200,000 EUR as 200,000"


WEIGHTS = {"unit": "", "bounds": [0, 40], "weights": True}


def test_a_codebook_states_weights_and_keeps_them():
    field = {"name": "w", "type": "number", "bounds": [0, "40.5"], "weights": True}
    domain = rp.Domain.from_schema({"fields": [field]})
    stated = domain["w"].values
    assert stated == rp.Amounts(0, "40.5", 3, are_weights=True)
    assert rp.Domain.from_schema(domain.to_schema()) == domain
    assert domain.weights == domain.amounts == (0,)
    assert stated.description == "weights from 0 to 40.5, rounded to 3 decimals"
    assert stated.clamping == "weights below 0 count as 0, those above 40.5 as 40.5"
    assert not values().are_weights
    assert "weights" not in rp.Domain.from_schema({"fields": [INCOME]}).to_schema()["fields"][0]
    narrower = domain.with_weights("w", "12.5")["w"].values
    assert narrower == rp.Amounts(0, "12.5", 3, are_weights=True)
    with pytest.raises(rp.errors.DomainError, match="has no weights"):
        rp.Domain.from_schema({"fields": [INCOME]}).with_weights("income", 5)


def test_weights_need_limits():
    field = {"name": "w", "type": "number", "weights": True, "bins": [0, 1]}
    with pytest.raises(rp.errors.DomainError, match='weights without limits; give it "bounds"'):
        rp.Domain.from_schema({"fields": [field]})


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (WEIGHTS | {"weights": 1}, 'its "weights" must be true or false, got 1'),
        (WEIGHTS | {"unit": "kg"}, "Weights have no unit"),
        (WEIGHTS | {"bounds": [-1, 5]}, "minimum of weights must be at least 0, got -1"),
        (WEIGHTS | {"bounds": [5, 5]}, "maximum of weights must be above the minimum"),
        ({"bounds": [0]}, "must be the lowest and the highest amount"),
        ({"bounds": [5, 5]}, "maximum of amounts must be above the minimum"),
        ({"bounds": [0, 0.5]}, "must have no more of them, got 0.5"),
        ({"bounds": [0, "much"]}, "must be a number within"),
        ({"bounds": [0, "1_000"]}, "must be a number within"),
        ({"bounds": [0, True]}, "must be a number within"),
        ({"bounds": [0, 1e400]}, "must be a number within"),
        ({"bounds": [0, 10**12], "decimals": 6}, "use fewer decimals"),
        ({"decimals": 7}, "decimals of amounts must be 0 to 6, got 7"),
        ({"bins": [0, 1]}, "these have no bins"),
        ({"constraints": {"maximum": 5}}, r"these have no constraints\.maximum"),
        ({"levels": {"rich": 2}}, "these have no levels"),
        ({"groups": [["a"], ["b"]]}, "these have no groups"),
        ({"type": "string"}, "are for amounts, of type number"),
        ({"unit": 5}, "The unit of amounts must be a text"),
    ],
)
def test_what_does_not_go_with_amounts_is_refused(field, words):
    with pytest.raises(rp.errors.DomainError, match=words):
        values(**field)


def test_a_csv_codebook_cannot_say_amounts(tmp_path):
    domain = rp.Domain.from_schema({"fields": [INCOME]})
    with pytest.raises(rp.errors.DomainError, match=r"save the domain as \.json"):
        domain.save(tmp_path / "codebook.csv")
    with pytest.raises(rp.errors.DomainError, match="bounds"):
        rp.Domain.parse("attribute,value,bounds\nincome,1,5\n", "codebook.csv")


def test_a_selection_is_no_mean():
    income = rp.Attribute("income", rp.Amounts(0, 1000, 0))
    with pytest.raises(
        DomainError, match=r"so a query on it is sum.*'mean'; `answer` alone tells means"
    ):
        coefficients(income, "mean")
