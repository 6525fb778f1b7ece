"""Sums over lists of areas, as a release answers them: school districts as lists of blocks."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rpexplore.domain.result_schema import RELEASED, Column, apart_from, frame_of
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_sums import AreaLists, AreaSums, variances_of_sums
from rpexplore.planning.mechanism.marginal_noise import query_attributes
from rpexplore.postprocessing.areas.released_cells import ReleasedAnswers
from rpexplore.releases.areas.area_files import CellErrors
from rpexplore.releases.areas.area_parts import AreaParts
from rpexplore.releases.areas.area_release import AreaRelease
from rpexplore.releases.finished_release import Release
from rpexplore.releases.table_cells import arrays_of_figures, label_columns

if TYPE_CHECKING:
    import pandas as pd


_LIST = Column("list", "code", "The list of areas that are added up.", attribute="list")


def sums_of_areas(
    release: AreaRelease | Release, lists: AreaLists, *attributes: str
) -> "pd.DataFrame":
    """A table summed over lists of areas: unbiased, with exact standard errors.

    Args:
        release: Of tables in areas.
        lists: As of `AreaPlan.accuracy_of_sums`: name -> areas, or a single area such as "R01".
        attributes: Those of a table of the plan; none for totals.

    Returns:
        One row a cell of a list: list, the labels of attributes, value, standard_error, lower_95,
        upper_95.

    Raises:
        ReleaseError: If an area of a list has no answer.
        DomainError: For an area that is not there, or that a list counts twice.
        WorkloadError: For a table that is asked for nowhere.
    """
    tables_in_areas: AreaRelease = release.area_tables()
    plan = tables_in_areas.plan
    sums = AreaSums.of(plan.workload.tree, lists)
    indices, tables = query_attributes(plan.domain, [attributes]), plan.workload.tables
    names = tuple(plan.domain.names[index] for index in indices)
    table, parts = tables.position(names), AreaParts(plan)
    errors_of = CellErrors.of(parts, table)
    variances = variances_of_sums(plan, sums)[errors_of.residuals]
    without = np.flatnonzero(np.any(np.isnan(variances), axis=0)).tolist()
    if without:
        raise ReleaseError(
            f"The list {sums.names[without[0]]!r} has an area for which the table "
            f"({', '.join(names) or 'total'}) was not asked; take areas of another level."
        )
    labels = [
        label_columns(plan.domain.attributes[index], tables.basis_of(table, index))
        for index in indices
    ]
    values = np.zeros((len(sums.names), *(len(named[0][1]) for named in labels)))
    answers = ReleasedAnswers(parts, tables_in_areas.folder)
    for part, within in enumerate(parts.areas):
        inside = np.zeros(len(sums.areas), dtype=bool)
        rows = np.zeros(len(sums.areas), dtype=np.int64)
        for level, areas in enumerate(within.slices):
            here = (sums.areas >= areas.start) & (sums.areas < areas.stop)
            inside |= here
            rows[here] = within.rows(level).start + sums.areas[here] - areas.start
        if np.any(inside):
            of_areas = answers.of_part(part).tables(table, rows[inside])
            np.add.at(values, sums.lists[inside], of_areas)
    of_cells = errors_of.from_variances(variances)
    errors = np.broadcast_to(of_cells, (len(values), values[0].size)).ravel()
    codes = np.indices(values.shape).reshape(values.ndim, -1)
    of_cells = [_LIST, *(column for named in labels for column, _ in named)]
    arrays = [pa.array(sums.names).take(codes[0])]
    for code, named in zip(codes[1:], labels, strict=True):
        arrays += [texts.take(code) for _, texts in named]
    arrays += arrays_of_figures(RELEASED, values.ravel(), errors)
    columns = (*apart_from(of_cells, RELEASED), *RELEASED)
    fields = [column.field(array.type) for column, array in zip(columns, arrays, strict=True)]
    return frame_of(pa.table(arrays, schema=pa.schema(fields)))
