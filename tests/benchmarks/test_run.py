"""`make bench` finds its cases: a benchmark that nobody can run measures nothing."""

from pathlib import Path

from tests.benchmarks import run


def test_every_module_of_benchmarks_has_its_cases_in_make_bench():
    modules = {Path(case.__code__.co_filename).stem for case in run.CASES.values()}
    others = {
        "beside",
        "data_of_r",
        "history",
        "made_up_state",
        "measure",
        "reference",
        "reference_driver",
        "run",
    }
    here = Path(run.__file__).parent.glob("*.py")
    assert {path.stem for path in here if not path.stem.startswith("test_")} == modules | others
