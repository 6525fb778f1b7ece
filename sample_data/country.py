"""Orsavia, an invented country: the figures that `generate.py` draws its people from.

All of them are made up, shaped like those of a mid-sized industrial country.
"""

Curve = tuple[tuple[float, float], ...]

SEX = {"F": "Female", "M": "Male"}
# code: (name, share of households, (city, town, village), pay level, occupations found more often)
REGIONS = {
    "R01": ("Northshore", 11, (35, 40, 25), 1.00, {"Transport": 1.6, "Manufacturing": 1.3}),
    "R02": ("Capital District", 18, (80, 15, 5), 1.22, {"Computing": 2, "Finance and law": 2}),
    "R03": ("Eastport", 10, (55, 30, 15), 1.05, {"Transport": 2, "Sales": 1.2}),
    "R04": ("Highfell", 4, (0, 35, 65), 0.88, {"Farming": 2, "Hospitality": 1.8}),
    "R05": ("Ambervale", 9, (25, 45, 30), 0.96, {"Farming": 1.8, "Manufacturing": 1.2}),
    "R06": ("Lakemarch", 7, (20, 45, 35), 0.94, {"Hospitality": 1.7, "Health": 1.2}),
    "R07": ("Southmere", 12, (50, 35, 15), 1.06, {"Engineering": 1.6, "Teaching": 1.2}),
    "R08": ("Westmoor", 6, (10, 40, 50), 0.90, {"Farming": 2, "Construction": 1.3}),
    "R09": ("Stonefield", 9, (45, 40, 15), 0.98, {"Manufacturing": 2.2, "Construction": 1.2}),
    "R10": ("Riverlands", 8, (20, 40, 40), 0.93, {"Farming": 1.6, "Transport": 1.2}),
    "R11": ("Pinewood", 4, (15, 35, 50), 0.91, {"Farming": 1.5, "Manufacturing": 1.3}),
    "R12": ("Outer Isles", 2, (0, 40, 60), 0.86, {"Farming": 2.5, "Hospitality": 1.6}),
}
# The parts of the country that the regions lie in.
PARTS = {
    "R01": "North",
    "R02": "Centre",
    "R03": "East",
    "R04": "North",
    "R05": "South",
    "R06": "East",
    "R07": "South",
    "R08": "South",
    "R09": "Centre",
    "R10": "Centre",
    "R11": "East",
    "R12": "North",
}
SETTLEMENTS = ("City", "Town", "Village")
MARITAL = ("Single", "Married", "Divorced", "Widowed")
# code: (name, weight among people of 30, weight among people of 80, pay level)
EDUCATION = {
    "E0": ("No level completed", 1, 5, 0.85),
    "E1": ("Primary", 2, 28, 0.88),
    "E2": ("Lower secondary", 10, 27, 0.92),
    "E3": ("Upper secondary", 27, 18, 1.00),
    "E4": ("Vocational", 22, 14, 1.05),
    "E5": ("Bachelor's degree", 25, 6, 1.18),
    "E6": ("Postgraduate degree", 13, 2, 1.38),
}
EMPLOYMENT = ("Employee", "Self-employed", "Unemployed", "Student", "Retired", "Homemaker",
              "Unable to work", "Under 16")  # fmt: skip
WORKING = frozenset({"Employee", "Self-employed"})
NO_OCCUPATION = "Not applicable"
# name: (monthly pay, weight for low, middle, high education, weight in city, town, village,
#        weight for women where it is 1 for men)
OCCUPATIONS = {
    "Management": (3600, (1, 4, 10), (1.2, 1, 0.8), 0.8),
    "Engineering": (3300, (0.1, 2, 9), (1.1, 1, 0.7), 0.4),
    "Computing": (3500, (0.1, 2, 8), (1.8, 0.8, 0.4), 0.5),
    "Teaching": (2700, (0, 1, 14), (1, 1, 1), 1.7),
    "Health": (2900, (0, 4, 11), (1.1, 1, 0.7), 1.7),
    "Finance and law": (3700, (0, 2, 8), (1.6, 0.8, 0.4), 1),
    "Office": (2100, (3, 12, 10), (1.2, 1, 0.7), 1.5),
    "Sales": (1800, (10, 12, 4), (1, 1.1, 0.8), 1.2),
    "Hospitality": (1500, (9, 7, 2), (1.1, 1, 0.8), 1.1),
    "Care": (1700, (8, 9, 2), (1, 1, 1), 2.0),
    "Construction": (2200, (13, 10, 1), (0.9, 1, 1.2), 0.2),
    "Manufacturing": (2100, (15, 11, 2), (0.8, 1.3, 0.9), 0.6),
    "Transport": (1900, (10, 7, 1), (1.1, 1, 0.8), 0.4),
    "Farming": (1600, (7, 3, 1), (0.05, 0.5, 4), 0.7),
}
INCOME_BINS = (0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 5000, 6000, 8000, 10000, 20000)
HOUSEHOLD_SIZES = ("1", "2", "3", "4", "5", "6", "7+")
TENURES = {
    "Owner": "Owner-occupied",
    "Renter": "Rented from a private owner",
    "Social": "Social housing",
    "Other": "Other, or free of rent",
}

# Weights and probabilities at some ages in years (or amounts, where the name says so), to be joined
# by straight lines.
HEADS: Curve = ((18, 0.15), (22, 0.6), (30, 1), (40, 1.1), (50, 1.15), (60, 1.05), (70, 0.85),
                (80, 0.5), (90, 0.13), (99, 0.01))  # fmt: skip
WOMEN_AMONG_ALONE: Curve = ((18, 0.49), (50, 0.5), (65, 0.56), (80, 0.66), (99, 0.78))
LIVES_AS_COUPLE: Curve = ((18, 0.04), (25, 0.4), (32, 0.64), (60, 0.68), (70, 0.6), (80, 0.4),
                          (90, 0.15))  # fmt: skip
COUPLE_IS_MARRIED: Curve = ((18, 0.1), (30, 0.55), (40, 0.75), (60, 0.9), (80, 0.98))
WIDOWED: Curve = ((30, 0), (45, 0.04), (60, 0.2), (70, 0.45), (80, 0.74), (99, 0.92))
DIVORCED: Curve = ((22, 0), (35, 0.15), (50, 0.42), (65, 0.38), (80, 0.14), (99, 0.03))
CHILD_STILL_AT_HOME: Curve = ((17, 1), (18, 0.9), (21, 0.65), (25, 0.3), (30, 0.1), (45, 0.03))
STUDIES: Curve = ((16, 0.93), (17, 0.85), (18, 0.35), (21, 0.15), (26, 0.05), (35, 0.01))
RETIRED: Curve = ((52, 0), (58, 0.1), (62, 0.35), (65, 0.72), (70, 0.92), (80, 1))
UNABLE_TO_WORK: Curve = ((18, 0.02), (40, 0.035), (60, 0.09))
UNEMPLOYED: Curve = ((16, 0.2), (25, 0.09), (35, 0.05), (60, 0.04))
SELF_EMPLOYED: Curve = ((18, 0.02), (30, 0.08), (50, 0.16), (65, 0.25), (80, 0.5))
EXPERIENCE: Curve = ((16, 0.55), (20, 0.68), (30, 0.95), (45, 1.12), (60, 1.08), (75, 0.8))
OWNER: Curve = ((18, 0.05), (25, 0.18), (35, 0.5), (50, 0.7), (65, 0.8), (99, 0.75))
OWNER_BY_INCOME: Curve = ((0, 0.4), (1000, 0.75), (2000, 1.05), (4000, 1.35))
SOCIAL_BY_INCOME: Curve = ((0, 0.7), (1000, 0.5), (2000, 0.2), (4000, 0.02))
PAY_BY_RANK: Curve = ((0, 0.45), (0.1, 0.68), (0.5, 0.97), (0.8, 1.25), (0.95, 1.7), (0.99, 2.6),
                      (0.999, 4.5), (1, 7))  # fmt: skip
CHILDREN_EVER_BORN = {"0": 17, "1": 20, "2": 38, "3": 16, "4": 6, "5": 2, "6": 1}
