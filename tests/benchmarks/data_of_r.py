"""Real records from packages of R, as codes: what forecasts are calibrated on, and tried on.

They are not in the repository. Where R and the packages are, `Rscript tests/benchmarks/data_of_r.R
FOLDER` writes them as CSV files to FOLDER, which is `r` beside the other data of benchmarks.
"""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

import rpexplore as rp
from tests.benchmarks.planning import DATA

FOLDER = DATA / "r"


class Banded(NamedTuple):
    """A number in bands of a width, those from `most` on together; `column`: what it is called."""

    width: float
    most: float = np.inf
    column: str = ""


_1 = Banded(1)
CALIBRATED = ("cps1988", "college", "doctor", "gss", "insurance", "smokeban", "arrests", "slid",
              "wvs")  # fmt: skip
OTHERS = ("cpssw8", "fertility", "nmes", "gssvocab", "stops", "eusilc", "ses", "chem97",
          "flchain", "bfi", "rotterdam")  # fmt: skip
# The file, and its attributes: as they are, or in bands.
SETS: dict[str, tuple[str, str, dict[str, Banded]]] = {
    "cps1988": ("AER-CPS1988", "wage education experience ethnicity smsa region parttime",
                {"wage": Banded(100, 20)}),
    "cpssw8": ("AER-CPSSW8", "earnings gender age region education", {"earnings": Banded(5, 12)}),
    "college": ("AER-CollegeDistance",
                "gender ethnicity score fcollege mcollege home urban education income region",
                {"score": Banded(5)}),
    "doctor": ("AER-DoctorVisits",
               "visits gender age income illness reduced health private nchronic lchronic", {}),
    "fertility": ("AER-Fertility", "morekids gender1 gender2 age afam hispanic other work", {}),
    "gss": ("AER-GSS7402",
            "kids age education year siblings ethnicity city16 lowincome16 immigrant",
            {"siblings": Banded(1, 15)}),
    "insurance": ("AER-HealthInsurance",
                  "health age limit gender insurance married selfemp family region ethnicity "
                  "education", {}),
    "nmes": ("AER-NMES1988",
             "visits emergency hospital health chronic adl region age afam gender married school "
             "employed medicaid", {"visits": Banded(3, 10)}),
    "smokeban": ("AER-SmokeBan", "smoker ban age education afam hispanic gender", {}),
    "arrests": ("carData-Arrests", "released colour year age sex employed citizen checks",
                {"age": Banded(2)}),
    "gssvocab": ("carData-GSSvocab", "year gender nativeBorn age educ vocab", {}),
    "stops": ("carData-MplsStops",
              "problem citationIssued personSearch vehicleSearch preRace race gender "
              "policePrecinct neighborhood", {}),
    "slid": ("carData-SLID", "wages education age sex language",
             {"wages": Banded(3, 12), "education": _1}),
    "wvs": ("carData-WVS", "poverty religion degree country age gender", {}),
    "eusilc": ("laeken-eusilc", "hsize db040 age rb090 pl030 pb220a eqIncome",
               {"eqIncome": Banded(4000, 12)}),
    "ses": ("laeken-ses",
            "location NACE1 size economicFinanc payAgreement sex age education occupation contract "
            "fullPart lengthService", {}),
    "chem97": ("mlmRev-Chem97", "lea score gender age gcse",
               {"gcse": Banded(0.5, column="gcsescore")}),
    "flchain": ("survival-flchain", "age sex sample.yr flc.grp mgus death chapter", {}),
    "bfi": ("psych-bfi", "A1 C2 E3 N4 O5 gender education age", {"age": Banded(3, 20)}),
    "rotterdam": ("survival-rotterdam",
                  "year age meno size grade nodes hormon chemo recur death",
                  {"age": Banded(5), "nodes": Banded(1, 15)}),
}  # fmt: skip
# Real areas: the file, their levels, the other attributes.
TREES: dict[str, tuple[str, str, str, dict[str, Banded]]] = {
    "stops": ("carData-MplsStops", "policePrecinct neighborhood",
              "problem personSearch race gender", {}),
    "schools of chem97": ("mlmRev-Chem97", "lea school", "score gender gcse",
                          {"gcse": Banded(0.5, column="gcsescore")}),
    "districts of schools": ("survey-apipop", "cname dname", "stype both awards api00",
                             {"api00": Banded(50)}),
    "eusilc": ("laeken-eusilc", "db040", "hsize age rb090 pl030", {}),
    "provinces": ("carData-CES11", "province", "gender abortion importance education", {}),
    "contraception": ("mlmRev-Contraception", "district", "use livch urban age",
                      {"age": Banded(3)}),
    "chile": ("carData-Chile", "region", "sex age education vote", {"age": Banded(3)}),
    "star": ("mlmRev-star", "sch", "gr cltype ses sx eth", {}),
    "regions of cps1988": ("AER-CPS1988", "region", "education experience ethnicity parttime", {}),
    "exam": ("mlmRev-Exam", "school", "vr intake sex", {}),
    "ses": ("laeken-ses", "location NACE1", "sex age education contract", {}),
    "wvs": ("carData-WVS", "country", "poverty religion age gender", {}),
    "math achieve": ("nlme-MathAchieve", "School", "Minority Sex SES MathAch",
                     {"SES": Banded(0.5), "MathAch": Banded(4)}),
    "nlschools": ("MASS-nlschools", "class", "COMB SES lang",
                  {"SES": Banded(10), "lang": Banded(10)}),
    "egsingle": ("mlmRev-egsingle", "schoolid", "grade retained female black hispanic", {}),
    "guatemala": ("mlmRev-guPrenat", "cluster",
                  "prenat childAge motherAge indig momEd husEd", {}),
    "vietnam": ("Ecdat-VietNamI", "commune", "sex married educ illness insurance", {}),
    "vietnam households": ("Ecdat-VietNamH", "commune", "sex educyr farm hhsize", {}),
    "benefits": ("Ecdat-Benefits", "state", "sex joblost nwhite ui tenure", {}),
    "star of kindergarten": ("Ecdat-Star", "schidkn", "classk sex freelunk race", {}),
    "lectures": ("lme4-InstEval", "dept", "studage lectage service y", {}),
    "nhanes": ("survey-nhanes", "SDMVSTRA SDMVPSU", "HI_CHOL race agecat RIAGENDR", {}),
    "growth": ("mice-fdgs", "reg", "sex age", {"age": Banded(1)}),
    "males": ("Ecdat-Males", "industry occupation", "ethn union married school", {}),
}  # fmt: skip


def at_hand(names: Iterable[str]) -> tuple[str, ...]:
    """Those of these sets or trees whose records are there."""
    files = {name: own[0] for name, own in (*SETS.items(), *TREES.items())}
    return tuple(name for name in names if (FOLDER / f"{files[name]}.csv").exists())


@cache
def records_of(name: str) -> tuple[rp.Domain, np.ndarray]:
    """The attributes, and the codes of each record; missing values are a value of their own."""
    file, names, banded = SETS[name]
    return _coded(pd.read_csv(FOLDER / f"{file}.csv", low_memory=False), names, banded)


@cache
def areas_of(name: str) -> tuple[rp.AreaTree, rp.Domain, np.ndarray, np.ndarray]:
    """The tree, the other attributes, the area and the codes of each record."""
    file, levels, names, banded = TREES[name]
    frame = pd.read_csv(FOLDER / f"{file}.csv", low_memory=False).dropna(subset=levels.split())
    paths, path = pd.DataFrame(index=frame.index), None
    for level in levels.split():
        own = frame[level].astype(str)
        path = own if path is None else path + "/" + own
        paths[level] = path
    there = paths.drop_duplicates().sort_values(levels.split())
    tree = rp.AreaTree.from_columns({level: there[level].tolist() for level in levels.split()})
    numbers = {row: tree.find(list(row)) for row in there.itertuples(False, None)}
    areas = np.array([numbers[row] for row in paths.itertuples(False, None)])
    return tree, *_of_records(areas, _coded(frame, names, banded))


def _of_records(
    areas: np.ndarray, coded: tuple[rp.Domain, np.ndarray]
) -> tuple[rp.Domain, np.ndarray, np.ndarray]:
    return coded[0], areas, coded[1]


def _coded(
    frame: pd.DataFrame, names: str, banded: dict[str, Banded]
) -> tuple[rp.Domain, np.ndarray]:
    sizes, codes = {}, []
    for name in names.split():
        band = banded.get(name)
        values = frame[(band.column if band else "") or name]
        if band is not None:
            values = np.minimum(np.floor(values / band.width), band.most)
        of_values = {value: code for code, value in enumerate(sorted(values.dropna().unique()))}
        codes.append(values.map(of_values).fillna(len(of_values)).to_numpy(np.int64))
        sizes[name.replace(".", "_")] = len(of_values) + int(values.isna().any())
    return rp.Domain.from_sizes(sizes), np.array(codes).T
