"""Scenarios side by side on the Scenarios page, and the project as one file."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.components.areas.study import area_outcome
from pages.components.shared.autosave import new_project, project_of_upload
from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.expected_counts import forecast
from pages.components.shared.files import download, upload
from pages.components.shared.inputs import measure_input, tabs
from pages.components.shared.session import bound, change_project, escaped, kept, project, say
from pages.components.shared.solutions import plan
from rpexplore.analysis import scenario_comparison, shared_tables
from rpexplore.analysis.scenario_comparison import area_inputs, area_outcomes
from rpexplore.analysis.shared_tables import Contender
from rpexplore.common.text import joined, plural
from rpexplore.domain.domain import except_from_records
from rpexplore.figures.accuracy import distribution_by_plan_chart
from rpexplore.figures.chart import COLUMNS, Column, Kind, columns_of, in_measure
from rpexplore.figures.queries import scenario_rows
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.project import content_of, filename_of
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving.sessions import plans_only, where_kept

# ---- Scenarios side by side on the Scenarios page: inputs, outcomes, curves, single tables.


MOST = 6  # as many as there are styles to tell apart


def comparison() -> None:
    """Choose scenarios, and see where their inputs and outcomes differ."""
    st.subheader("Side by side")
    if len(project().scenarios) == 1:
        st.info("There is one scenario; duplicate it, and change the copy, to compare.")
        return
    scenarios = _chosen()
    if len(scenarios) < 2:
        st.info("Choose at least two scenarios.")
        return
    if any("tables" not in scenario.kinds for scenario in scenarios):
        if any(scenario.areas is not None for scenario in scenarios):
            areas_of_scenarios(scenarios)
        else:
            st.info("Scenarios without tables are compared by their areas, and these have none.")
        return
    plans = [planned for scenario in scenarios if (planned := plan(scenario)) is not None]
    if len(plans) < len(scenarios):
        return
    contenders = [
        kept(Contender, scenario, planned, forecast(planned, scenario), slot=scenario.name)
        for scenario, planned in zip(scenarios, plans, strict=True)
    ]
    _shared(contenders)
    views = {
        "Share of tables by accuracy": lambda: _curves(contenders),
        "Table by table": lambda: _tables(contenders),
        "Tables of one alone": lambda: _own_tables(contenders),
        "Inputs and outcomes": lambda: _texts(scenarios, plans),
    }
    if any(scenario.areas is not None for scenario in scenarios):
        views["Areas"] = lambda: areas_of_scenarios(scenarios)
    tabs("compared_by", views)


def _shared(contenders: list[Contender]) -> None:
    """What each gives for the tables that all have, and which is better where."""
    frame = kept(shared_tables.outcomes, contenders)
    sentences = kept(shared_tables.describe_outcomes, contenders)
    st.markdown("  \n".join(map(escaped, sentences)))
    if frame.empty:
        return
    nouns = [contender.scenario.record_noun for contender in contenders]
    st.html(scenario_rows(frame, nouns, shared_tables.whom(contenders)))
    count = plural(int(frame["shared"].iloc[0]), "table")
    own = ", ".join(
        f"{row['own']:,} only in “{row['scenario']}”"
        for row in frame.to_dict("records")
        if row["own"]
    )
    st.caption(escaped(f"Over the {count} that all of them have{f'; {own}' if own else ''}."))


def _texts(scenarios: list[Scenario], plans: list[TablePlan]) -> None:
    """Inputs and outcomes as texts."""
    differing = st.toggle("Only where they differ", key="only differing", persist_state="session")
    inputs = kept(scenario_comparison.inputs, scenarios)
    outcomes = kept(scenario_comparison.outcomes, scenarios, plans)
    texts_of_scenarios("Inputs", inputs, scenarios, differing=differing)
    texts_of_scenarios("Outcomes, all tables", outcomes, scenarios, differing=differing)


def _chosen() -> list[Scenario]:
    """The scenarios to compare: all but those that were taken out, so that new ones are in."""
    names = project().names
    left_out = st.session_state.setdefault("not compared", frozenset())

    def choose(chosen: list[str]) -> None:
        st.session_state["not compared"] = frozenset(names) - set(chosen)

    shown = [name for name in names if name not in left_out][:MOST]
    chosen = st.multiselect(
        "Scenarios to compare",
        names,
        max_selections=MOST,
        **bound("compared", shown, choose),
    )
    return [scenario for scenario in project().scenarios if scenario.name in chosen]


def _curves(contenders: list[Contender]) -> None:
    """The distribution of the accuracy of every scenario, in one chart."""
    measure = measure_input()
    accuracies = [
        kept(contender.accuracy.in_measure, measure, slot=contender.scenario.name)
        for contender in contenders
    ]
    record_noun = shared_tables.common_word(
        contender.scenario.record_noun for contender in contenders
    )
    chart = kept(distribution_by_plan_chart, accuracies, record_noun)
    chart = replace(
        chart,
        subject=f"Share of tables by {measure.noun}, one curve a scenario",
        columns=chart.columns | {"series": Column("scenario", "text")},
        file="scenarios.csv",
        remark="A curve further left is a more accurate plan.",
    )
    chart_with_numbers(chart)


def _tables(contenders: list[Contender]) -> None:
    """The accuracy of single tables in two of the scenarios."""
    measure = measure_input()
    names = [contender.scenario.name for contender in contenders]
    left, right = st.columns(2)
    one = left.selectbox("From", names, key=_valid_key("compared from", names))
    others = [name for name in names if name != one]
    two = right.selectbox("to", others, key=_valid_key("compared to", others))
    before, after = contenders[names.index(one)], contenders[names.index(two)]
    frame = kept(shared_tables.table_differences, before, after, measure)
    st.markdown(escaped(shared_tables.describe_differences(frame, one, two, measure)))
    if frame.empty:
        return
    differ = "left_largest" in frame  # the cells of some table
    headings = {
        "": "root mean square of cells σ" if differ else f"{measure.noun} σ",
        "_largest": "least accurate cell σ",
        "_people": f"{shared_tables.whom(contenders)} in good cells",
        "_target": "target",
    }
    kinds: dict[str, Kind] = {"_people": "text", "_target": "text"}
    columns = {"table": COLUMNS["table"], "order": COLUMNS["order"]}
    for end, heading in headings.items():
        for side, name in (("left", one), ("right", two)):
            if f"{side}{end}" in frame:
                column = Column(heading, kinds.get(end, "number"))
                column = column if end in kinds else in_measure(column, measure)
                columns[f"{side}{end}"] = replace(column, heading=f"{column.heading}, {name}")
        if not end:
            columns["change"] = Column("change", "share")
    alt = f"{measure.title} of each table in {one} and in {two}"
    numbers(frame, columns, "differences.csv", alt)


def _own_tables(contenders: list[Contender]) -> None:
    """The tables that only one scenario has."""
    frame = kept(shared_tables.list_own_tables, contenders)
    if frame.empty:
        st.info("Every table is in several of these scenarios.")
        return
    heading = f"{shared_tables.whom(contenders)} in good cells"
    people = {"people": Column(heading, "text")} if "people" in frame else {}
    columns = columns_of(frame.drop(columns="people", errors="ignore")) | people
    numbers(frame, columns, "own_tables.csv", "Tables that only one scenario has")


def _valid_key(key: str, names: list[str]) -> str:
    """The key of a choice among these names, which is forgotten when it is none of them."""
    if st.session_state.get(key) not in names:
        st.session_state[key] = names[0]
    return key


# ---- The areas of scenarios side by side, on the Scenarios page.


def areas_of_scenarios(scenarios: Sequence[Scenario]) -> None:
    """Inputs and outcomes of those that have areas; they are planned one after another."""
    having = [scenario for scenario in scenarios if scenario.areas is not None]
    others = [f"“{scenario.name}”" for scenario in scenarios if scenario.areas is None]
    if others:
        st.caption(escaped(f"Without areas: {joined(others)}."))
    inputs = kept(area_inputs, having)
    texts_of_scenarios("Inputs", inputs, having, differing=False)
    outcomes = []
    for scenario in having:
        outcome = area_outcome(scenario)
        if outcome is None:
            return
        outcomes.append(outcome)
    texts_of_scenarios("Outcomes", kept(area_outcomes, having, outcomes), having, differing=False)
    if inputs.loc[["Areas", "Tables", "Objective"], "differs"].any():
        st.caption(
            "The objective compares plans only where areas, tables with their weights and targets, "
            "and the objective itself are the same."
        )


# ---- A table of texts, one column a scenario, on the Scenarios page.


def texts_of_scenarios(
    heading: str, texts: pd.DataFrame, scenarios: Sequence[Scenario], *, differing: bool
) -> None:
    """Rows that differ carry a mark, and can be all that is shown."""
    st.markdown(f"**{heading}**")
    rows = texts.loc[texts["differs"]] if differing else texts
    names = [f"scenario {index}" for index in range(len(scenarios))]
    frame = rows.set_axis([*names, "differs"], axis=1)
    frame["differs"] = ["≠" if differs else "" for differs in rows["differs"]]
    frame.insert(0, "row", frame.index)
    if frame.empty:
        st.caption("The same in all scenarios.")
        return
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        alt=f"{heading}, side by side; ≠ marks what differs",
        column_order=["row", "differs", *names],
        column_config={
            "row": st.column_config.TextColumn("", pinned=True),
            "differs": st.column_config.TextColumn("≠", width=40, help="≠: not the same in all"),
            **{name: scenario.name for name, scenario in zip(names, scenarios, strict=True)},
        },
    )


# ---- The project as one file: saved, loaded, started anew.


def project_file(slot: str) -> None:
    """Widgets to save and load the whole project; messages go to `slot`."""

    def load(content: bytes, name: str) -> None:
        if change_project(slot, lambda: project_of_upload(content, name)):
            _give_up_release()
            scenarios = plural(len(project().scenarios), "scenario")
            say(slot, "success", f"Opened {name}: {scenarios}. Undo brings back the others.")

    def start_anew() -> None:
        if change_project(slot, new_project):
            _give_up_release()
            say(slot, "success", "A new project on the sample survey. Undo brings back the other.")

    st.subheader("The project as a file")
    but = except_from_records(*(scenario.domain for scenario in project().scenarios))
    st.markdown(
        "All scenarios together are a project. It is saved "
        f"{where_kept()} with every change, and found again after a refresh. As a file it can be "
        "kept elsewhere or passed on. It holds "
        f"what you have chosen, and nothing from records{escaped(but)}."
    )
    held = project()  # the file is made by another thread, which knows no session
    file = filename_of(held)
    download(file, lambda: content_of(held), f"Save {file}")
    if held.areas:
        st.caption("It is a zip file because the areas are in it, for another computer.")
    st.page_link("pages/home.py", label="All saved projects")
    with st.expander("Replace all scenarios"):
        upload(
            "A project file saved here, in place of all scenarios above",
            ["json", "zip"],
            "project file",
            load,
        )
        st.button("Start a new project on the sample survey", on_click=start_anew)


def _give_up_release() -> None:
    if not plans_only():  # else there is none
        from pages.components.release.release_task import give_up_release

        give_up_release()
