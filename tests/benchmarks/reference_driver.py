"""The reference's side of `tests.benchmarks.reference`: one task, run in the folder of a clone.

Its text is given to the clone's interpreter with `python -c`, so it imports nothing of this
repository. One JSON object comes on standard input (a task), one goes to the last line of output.
"""

import json
import re
import resource
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from math import prod, sqrt
from pathlib import Path
from types import ModuleType


def load_reference():
    """Its module `resplan`, without Gurobi and the file of its licence where they are missing.

    Both are imported by it and used by no task.
    """
    missing = [] if find_spec("gurobipy") else ["gurobipy"]
    if not Path("resplan/parameter.py").is_file():
        missing.append("resplan.parameter")
    for name in missing:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(GRB=None, options=None)
    resplan = import_module("resplan")
    for name in missing:  # or cvxpy would take it for the solver
        del sys.modules[name]
    return resplan


def planned(resplan, task):
    """(its planner with noise levels, its objective at privacy cost 1, number of cells)."""
    sizes = task["sizes"]
    planner = resplan.ResPlanMax if task["kind"] == "largest" else resplan.ResPlanSum
    system, cells = planner(sizes, list(task["bases"])), 0
    for order in range(task["order"] + 1):
        for attributes in combinations(range(len(sizes)), order):
            system.input_mech(attributes)
            cells += prod(sizes[attribute] for attribute in attributes)
    return system, system.get_noise_level(), cells


def peak_gigabytes():
    """As of `tests.benchmarks.measure`."""
    status = Path("/proc/self/status")
    if status.is_file():
        return int(re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())[0]) * 1024 / 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9


def run(resplan, task):
    start = time.process_time()
    system, objective, cells = planned(resplan, task)
    if task["kind"] == "reconstruction":
        names = [f"a{i}" for i in range(len(task["sizes"]))]
        records = import_module("pandas").DataFrame(0, index=range(100), columns=names)
        system.input_data(records, names)
        system.measurement()
        start = time.process_time()
        system.reconstruction()
    seconds = time.process_time() - start
    if task["kind"] == "reconstruction":
        tables = system.marg_dict.values()
        cells = sum(table.get_noisy_answer_vector().size for table in tables)
    return {
        "seconds": seconds,
        "gigabytes": peak_gigabytes(),
        "objective": float(objective if task["kind"] == "largest" else sqrt(objective / cells)),
        "cells": int(cells),
    }


task = json.load(sys.stdin)
resplan = load_reference()
run(resplan, {**task, "sizes": [3] * 3, "bases": task["bases"][:1] * 3})  # imports at first use
print("\n" + json.dumps(run(resplan, task)))
