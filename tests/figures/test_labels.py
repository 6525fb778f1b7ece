"""Labels of an axis: short, and different where they were."""

from hypothesis import given
from hypothesis import strategies as st

from rpexplore.figures.axes import shortened, shortened_labels

# Of the Current Population Survey, of ICD-10 and of NACE.
EMPLOYMENT = [
    "Employed, at work full time, private sector",
    "Employed, at work full time, public sector",
    "Employed, at work part time, private sector",
    "Employed, with a job but not at work",
    "Unemployed, looking for full-time work",
    "Unemployed, looking for part-time work",
    "Not in labour force",
    "Not in labour force, retired or otherwise",
]
DISEASES = [
    "Certain infectious and parasitic diseases",
    "Diseases of the eye and adnexa",
    "Diseases of the musculoskeletal system and connective tissue",
    "Diseases of the skin and subcutaneous tissue",
]
TRADE = [
    "Wholesale trade, except of motor vehicles and motorcycles",
    "Retail trade, except of motor vehicles and motorcycles",
]


def test_long_names_are_cut():
    assert shortened("age × sex") == "age × sex"
    assert shortened("a" * 31) == "a" * 29 + "…"
    assert len(shortened("a" * 1000, 12)) == 12


def test_labels_of_classifications_are_cut_where_they_agree():
    assert shortened_labels(EMPLOYMENT) == [
        "…full time, private sector",
        "…full time, public sector",
        "…part time, private sector",
        "…with a job but not at work",
        "Unemployed…full-time work",
        "Unemployed…part-time work",
        "Not in labour force",
        "Not in…retired or otherwise",
    ]
    assert shortened_labels(DISEASES) == [
        "Certain infectious and parasi…",
        "Diseases of the eye and adnexa",
        "…musculoskeletal system and c…",
        "…skin and subcutaneous tissue",
    ]


def test_labels_that_differ_at_their_start_keep_it():
    assert shortened_labels(TRADE) == [
        "Wholesale trade, except of mo…",
        "Retail trade, except of motor…",
    ]


def test_labels_that_cannot_be_told_apart_when_cut_stay_as_they_are():
    labels = ["x" * 40 + "1", "x" * 40 + "2", "y" * 40]
    assert shortened_labels(labels) == [*labels[:2], "y" * 29 + "…"]


@given(st.lists(st.text("ab, …", max_size=40)), st.integers(8, 30))
def test_different_labels_stay_different_and_short_ones_as_they_are(labels, longest):
    short = dict(zip(labels, shortened_labels(labels, longest), strict=True))
    assert len(set(short.values())) == len(short)
    assert all(len(after) <= max(longest, len(label)) for label, after in short.items())
    assert all(after == label for label, after in short.items() if len(label) <= longest)
