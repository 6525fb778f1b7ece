"""Noisy marginals: what their cells say of every residual, and what is refused."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import laplace, uniform

import rpexplore as rp
from rpexplore.errors import BudgetError, DomainError, ReleaseError
from rpexplore.results.noisy_marginal import NoisyMarginal, variance_of_noise
from tests.support.oracles import (
    kron,
    marginal_matrix,
    residual_covariance,
    residual_matrix,
    sub,
    subsets,
)

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("age", rp.Integers(0, 8, 3)),
        rp.Attribute("one", rp.Categories(("k",))),
        rp.Attribute("big", rp.Integers(1, 100_000)),
        rp.Attribute("huge", rp.Integers(1, 100_000)),
    )
)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_each_residual_gets_what_the_cells_say_of_it(sizes, data):
    """Against R_A' on the table's own cells: contribution Sub⁺ R_A' y, covariance v R_A' R_A'ᵀ."""
    domain = rp.Domain.from_sizes({f"a{i}": n for i, n in enumerate(sizes)})
    table = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(sizes)))))))
    shape = [sizes[attribute_index] for attribute_index in table]
    values = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=shape)
    variance = data.draw(st.fractions(Fraction(1, 100), 100))
    estimates = NoisyMarginal(domain, table, values, variance).estimates()
    assert estimates.tables == (table,)
    kept = [attribute_index for attribute_index in table if sizes[attribute_index] > 1]
    assert set(estimates.contributions) == set(subsets(kept))
    for subset in subsets(kept):
        axes = [table.index(attribute_index) for attribute_index in subset]
        measuring = residual_matrix(shape, axes)
        inverse = kron(np.linalg.pinv(sub(sizes[attribute_index])) for attribute_index in subset)
        expected = inverse @ measuring @ values.ravel()
        np.testing.assert_allclose(estimates.contributions[subset].ravel(), expected, atol=1e-9)
        np.testing.assert_allclose(
            float(variance) * measuring @ measuring.T,
            float(estimates.variances[subset]) * residual_covariance(shape, axes),
            rtol=1e-12,
            atol=1e-12,
        )
    # Alone it gives back what was put in, with the stated variance of every cell.
    names = [domain.names[attribute_index] for attribute_index in table]
    np.testing.assert_allclose(estimates.marginal(names), values, atol=1e-9)
    np.testing.assert_allclose(estimates.marginal_variances(names), float(variance), rtol=1e-12)
    total = marginal_matrix(shape, ()) @ values.ravel()
    assert estimates.answer().value == pytest.approx(total[0])


def test_axes_may_be_named_in_any_order():
    values = np.arange(6.0).reshape(3, 2)
    marginal = NoisyMarginal.of(DOMAIN, ["age", "sex"], values, "0.1")
    assert marginal.attribute_indices == (0, 1)
    assert np.array_equal(marginal.values, values.T)
    assert marginal.variance == Fraction(1, 10)
    assert marginal.name == "marginal (sex × age)"
    assert repr(marginal) == "<NoisyMarginal 'marginal (sex × age)' of (sex × age)>"


def test_the_values_are_its_own():
    values = np.zeros(2)
    marginal = NoisyMarginal.of(DOMAIN, "sex", values, 1)
    values[0] = 7
    assert marginal.values.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        marginal.values[0] = 1


def test_what_it_spent_is_its_own():
    marginal = NoisyMarginal.of(DOMAIN, "sex", [1, 2], 1, rho="1/8", max_records_per_person=2)
    assert marginal.source.rho == Fraction(1, 8)
    assert marginal.source.unit == "one person with at most 2 records"
    assert not marginal.source.is_release
    assert NoisyMarginal.of(DOMAIN, "sex", [1, 2], 1).source.rho is None
    with pytest.raises(BudgetError):
        NoisyMarginal.of(DOMAIN, "sex", [1, 2], 1, rho=0)


def test_different_noisy_marginals_have_different_hashes():
    """By their counts: the same ones with another variance are the same measurement."""
    given_ = [("sex", [1, 2], 1), ("sex", [1, 3], 1), ("sex", [1, 2], 2), (["sex", "one"], 0, 1)]
    by_name = {
        NoisyMarginal.of(
            DOMAIN, names, np.broadcast_to(values, 2).reshape([2, 1][: len(names)]), v
        ).source.sha256
        for names, values, v in [([n] if isinstance(n, str) else n, x, v) for n, x, v in given_]
    }
    assert len(by_name) == 3


@pytest.mark.parametrize(
    ("values", "variance", "message"),
    [
        ([1, 2, 3], 1, r"\(sex\) must have the shape \(2,\).*got \(3,\)"),
        ([[1, 2]], 1, r"got \(1, 2\)"),
        ([1, float("nan")], 1, "must be finite numbers, got nan"),
        ([1, float("-inf")], 1, "must be finite numbers, got -inf"),
        ([1, 2], 0, "must be positive, got 0"),
        ([1, 2], -1, "must be positive, got -1"),
        ([1, 2], "1e-400", "must be 1e-100 to 1e100, got 1/1.* cannot be computed with"),
        ([1, 2], "1e400", "must be 1e-100 to 1e100, got 1000.* cannot be computed with"),
        ([1, 2], float("nan"), "variance must be a finite number"),
        ([1, 2], "many", "variance must be a finite number, got many"),
    ],
)
def test_what_is_no_noisy_marginal_is_refused(values, variance, message):
    with pytest.raises(ReleaseError, match=message):
        NoisyMarginal.of(DOMAIN, "sex", values, variance)


# ---- rows


def rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": ["6 to 8", "0 to 2", "3 to 5"] * 2,
            "count": [5.5, -1.0, 3.0, 6.0, 2.0, 4.25],
            "sex": ["m", "f", "f", "f", "m", "m"],
        }
    )


EXPECTED = [[-1.0, 3.0, 6.0], [2.0, 4.25, 5.5]]


def test_rows_may_stand_in_any_order():
    marginal = NoisyMarginal.of_frame(DOMAIN, rows(), 4, name="census", rho="0.1")
    assert marginal.attribute_indices == (0, 1)
    assert marginal.values.tolist() == EXPECTED
    assert marginal.name == "census"
    assert marginal.rho == Fraction(1, 10)


def test_values_may_be_labels_and_the_counts_be_called_otherwise():
    frame = rows().replace({"f": "female", "m": "male"}).rename(columns={"count": "people"})
    marginal = NoisyMarginal.of_frame(DOMAIN, frame, 4, count="people")
    assert marginal.values.tolist() == EXPECTED


def test_whole_numbers_may_be_numbers():
    domain = rp.Domain.from_sizes({"n": 3})
    frame = pd.DataFrame({"n": [2, 0, 1], "count": [12, 10, 11]})
    assert NoisyMarginal.of_frame(domain, frame, 1).values.tolist() == [10, 11, 12]


def test_a_total_has_no_columns_but_its_count():
    marginal = NoisyMarginal.of_frame(DOMAIN, pd.DataFrame({"count": [7.5]}), 1)
    assert marginal.attribute_indices == ()
    assert marginal.values == 7.5


def with_row(frame, **values):
    return pd.concat([frame, pd.DataFrame([values])], ignore_index=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(index=1), r"one row for each of its 6 cells, and has none for \(sex = f"),
        (lambda f: f.drop(index=0), r"none for \(sex = male, age = 6 to 8\)"),
        (lambda f: with_row(f, age="0 to 2", sex="f", count=1), "and has 2 for"),
        (
            lambda f: with_row(f, age="9", sex="f", count=1),
            "value '9' for 'age'.*not in the domain",
        ),
        (lambda f: f.replace({"f": "female"}), "some values of 'sex' as in the codebook"),
        (lambda f: f.drop(columns="count"), "must have one column 'count'.*got age, sex"),
        (lambda f: f.rename(columns={"sex": "Sex"}), "column 'Sex', which is no attribute"),
        (
            lambda f: f.assign(count="a"),
            "must have numbers in the column 'count', got 'a' in row 1",
        ),
        (lambda f: f.assign(count=None), "must have numbers"),
        (lambda f: f.assign(count=float("inf")), "must be finite numbers, got inf"),
        (lambda f: f.iloc[:, [0, 1, 2, 1]], "must have one column 'count'"),
        (lambda f: f.assign(big=1, huge=1), "60,000,000,000 cells by the domain"),
    ],
)
def test_rows_that_do_not_fit_are_refused(change, message):
    with pytest.raises(
        ReleaseError, match=f"^The noisy marginal .*{message}|^The counts.*{message}"
    ):
        NoisyMarginal.of_frame(DOMAIN, change(rows()), 4)


def test_an_attribute_twice_is_refused():
    with pytest.raises(DomainError, match="'sex' is named twice"):
        NoisyMarginal.of_frame(DOMAIN, rows().iloc[:, [0, 1, 2, 2]], 4)


# ---- files


def test_a_csv_file_is_read(tmp_path):
    path = tmp_path / "census.csv"
    rows().to_csv(path, index=False, encoding="utf-8-sig")
    marginal = NoisyMarginal.load(DOMAIN, path, "4", rho="0.1", max_records_per_person=3)
    assert marginal.values.tolist() == EXPECTED
    assert marginal.name == "census.csv"
    assert marginal.source.unit == "one person with at most 3 records"


def test_texts_stay_as_they_are_in_a_csv_file(tmp_path):
    domain = rp.Domain((rp.Attribute("code", rp.Categories(("007", "NA", "1.0"))),))
    path = tmp_path / "codes.csv"
    path.write_text("code,count\n007,1\n1.0,3\nNA,2\n")
    assert NoisyMarginal.load(domain, path, 1).values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read .*check the path"),
        (b'sex,count\nf,"1\n', "is no usable CSV .*every quote is closed"),
        (b"", "must have a line of column names"),
        (b"sex,count\nf,1,2,3\nm\n", "as many values in each row"),
        (b"sex,count\nf,\xff\nm,2\n", "is not UTF-8 text"),
        (b"sex,count\nf,\nm,2\n", "must have numbers"),
        (b"sex;count\nf;1\nm;2\n", "must have one column 'count'"),
    ],
)
def test_files_that_cannot_be_used_are_refused(content, message, tmp_path):
    path = tmp_path / "census.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReleaseError, match=message) as error:
        NoisyMarginal.load(DOMAIN, path, 1)
    assert "census.csv" in str(error.value)


@pytest.mark.parametrize("scale", ["1/2", "2", "40"])
def test_variances_of_laws_are_their_sums(scale):
    b = float(Fraction(scale))
    k = np.arange(-4000, 4001)
    weights = np.exp(-np.abs(k) / b)
    geometric = np.sum(k**2 * weights) / np.sum(weights)
    assert float(variance_of_noise("geometric", scale)) == pytest.approx(geometric, rel=1e-9)
    assert float(variance_of_noise("laplace", scale)) == pytest.approx(laplace(scale=b).var())
    assert float(variance_of_noise("rounding", scale)) == pytest.approx(uniform(0, b).var())
    with pytest.raises(ReleaseError, match="must be positive"):
        variance_of_noise("laplace", 0)
