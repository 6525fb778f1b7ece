"""The app under Streamlit's own test runner: no browser, every page through app.py."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from streamlit import config
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

import rpexplore as rp
from pages.components.release.release_task import RELEASE_TASK
from pages.components.results.postprocess import POSTPROCESSING
from pages.components.shared import autosave, background
from pages.components.shared.charts import NUMBERS
from pages.components.shared.session import kept_name
from rpexplore.analysis import drawn_areas, populations
from rpexplore.common.installation import sample_data_folder
from rpexplore.common.server import Limits, ServerSettings, server_settings
from rpexplore.data.files import offered
from rpexplore.planning.part_plan import keeping
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.support.processor_time import PATIENCE

APP = Path(__file__).parents[2] / "app.py"
# With the settings of the app, which Streamlit would look for in the folder that a test works in:
# it would count what is called, and rewrite every page before it is drawn.
with chdir(APP.parent):
    config.get_config_options(force_reparse=True)

FIRST_PAGE = "home"
TITLES = {
    "home": "Will your tables be good enough to publish, and for whom?",
    "codebook": "Data",
    "workload": "Tables",
    "plan": "Plan",
    "fairness": "Fairness",
    "tradeoffs": "Trade-offs",
    "scenarios": "Scenarios",
    "release": "Release",
    "results": "Results",
}
VIEWS = {
    "workload": ("which", "weights", "aggregation", "areas", "counts", "list"),
    "fairness": (
        "Plans",
        "By size",
        "Distribution",
        "Tables",
        "Attributes",
        "Binding targets",
        "Good cells",
    ),
    "tradeoffs": ("Smaller errors", "Targets", "Average vs worst case", "What if", "Baselines"),
    "compared_by": (
        "Share of tables by accuracy",
        "Table by table",
        "Tables of one alone",
        "Inputs and outcomes",
    ),
}


# Of the lines of the page Tables, each in its editor: the key of its tabs, and what they show.
VIEWS_OF_LINES = {
    "counts": ("queries", ("Count by count", "Baselines", "Privacy profile")),
    "areas": ("areas", ("Levels", "Tables", "Plan", "By area", "Map")),
}


PARTS = {"areas": "areas", "queries": "counts"}


def some_or_all(*names: str):
    """Gives a test `titles`: those of these pages, and by night of all."""
    some = {name: TITLES[name] for name in names}
    return pytest.mark.parametrize(
        "titles",
        [
            pytest.param(some, id="some pages"),
            pytest.param(TITLES, marks=pytest.mark.nightly, id="all pages"),
        ],
    )


class App:
    """One session of the app, opened on a page."""

    def __init__(self, page: str, key: str | None = None) -> None:
        self.test = AppTest.from_file(str(APP), default_timeout=PATIENCE)
        if key is not None:  # of a saved project, as in the address
            self.test.query_params["project"] = key
        # Before the first run Streamlit knows pages by their files' names, the first by none.
        if page == FIRST_PAGE:
            self.test.run()
        else:
            self.open(page)

    def open(self, page: str) -> "App":
        """Open a page, or a part of the page Tables."""
        if page in PARTS:
            self.test.query_params["part"], page = PARTS[page], "workload"
        self.test.switch_page(f"pages/{page}.py").run()
        return self

    def show(self, tabs: str, view: str) -> "App":
        """Show one of the tabs of the page that is open, as a click or the address would."""
        if tabs == "workload":
            self.test.query_params["part"] = view
        else:
            if tabs in PARTS:  # whose address wins over the state
                self.test.query_params[tabs] = view
            self.test.session_state[tabs] = view
        self.run()
        assert not self.test.exception, view
        return self

    def pages(self, titles: Mapping[str, str] = TITLES) -> Iterator[str]:
        """The names of all pages, each open in turn, and in every view that it has."""
        has = {"counts": self.scenario.query_list, "areas": self.scenario.areas}
        for page, title in titles.items():
            self.open(page)
            assert self.test.title[0].value == title
            assert not self.test.exception, page
            if page not in VIEWS:
                yield page
            for view in VIEWS.get(page, ()):
                self.show(page, view)
                yield f"{page}: {view}"
                if has.get(view) is not None:
                    key, tabs = VIEWS_OF_LINES[view]
                    for tab in tabs:
                        self.show(key, tab)
                        yield f"{page}: {view}, {tab}"

    def run(self) -> "App":
        self.test.run()
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.test, name)

    @property
    def scenario(self) -> Scenario:
        return self.project.current

    @scenario.setter
    def scenario(self, scenario: Scenario) -> None:
        self.test.session_state["project"] = Project((scenario,))

    @property
    def project(self) -> Project:
        return self.test.session_state["project"]

    def button_of(self, label: str) -> Any:
        """The button whose label starts like this."""
        return next(button for button in self.test.button if button.label.startswith(label))

    @property
    def planned(self) -> TablePlan:
        """The plan that was made last."""
        return self.test.session_state[kept_name(keeping, self.scenario.name)][1]

    def press(self, label: str) -> "App":
        self.button_of(label).click().run()
        return self

    def unfold(self, key: str) -> "App":
        """Open an expander whose contents are drawn only when it is open."""
        self.test.session_state[key] = True
        return self.run()

    def type_in_grid(self, name: str, row: int, column: str, value: Any) -> "App":
        """Type into a cell of an editor, as the browser would report it."""
        key = next(editor.key for editor in self.test.data_editor if editor.key.startswith(name))
        cells = dict(self.test.session_state[key]["edited_rows"])
        cells[row] = {**cells.get(row, {}), column: value}
        self.test.session_state[key] = {
            "edited_rows": cells,
            "added_rows": [],
            "deleted_rows": [],
        }
        return self.run()

    def views_of_results(self, folder: Path, table: Sequence[str]) -> Iterator[str]:
        """The names of the views of a table on the page Results, each shown in turn."""
        self.open("results").text_input(key="results folder").set_value(str(folder)).run()
        for _ in range(40):
            if self.multiselect or self.error:
                break
            self.run()
        for view in ("List", "Crosstab", "Bars", "Heat map"):
            self.multiselect(key="looked at").set_value(list(table)).run()
            self.radio(key="results view").set_value(view).run()
            assert not self.exception
            assert not self.error, (view, [one.value for one in self.error])
            yield view

    def metrics(self) -> dict[str, str]:
        return {metric.label: metric.value for metric in self.test.metric}

    def texts(self, kind: str) -> list[str]:
        """What is written in elements of a kind, without what keeps a number beside its sign."""
        return [element.value.replace("\u00a0", " ") for element in getattr(self.test, kind)]


def plain(texts: list[str]) -> str:
    """Texts of a page as they are read, without escapes."""
    return " ".join(texts).replace("\\", "").replace("\u00a0", " ")


def check_charts(session: App) -> None:
    """Every chart has its sentence, also in the caption, its numbers, also as CSV, and pictures."""
    charts, captions = session.get("plotly_chart"), plain(session.texts("caption"))
    numbers = [box for box in session.expander if box.label == NUMBERS]
    assert len(numbers) == len(charts)
    for chart, expander in zip(charts, numbers, strict=True):
        subject, _, sentence = chart.proto.alt.partition(". ")
        assert subject
        assert sentence
        assert sentence in captions
        (frame,) = expander.dataframe
        assert len(frame.value) > 0
        (button,) = expander.get("download_button")
        assert button.label.endswith(".csv")
        assert len(expander.get("bidi_component")) == 1
        name = json.loads(chart.proto.config)["toImageButtonOptions"]["filename"]
        assert button.label == f"Download {name}.csv"


@pytest.fixture
def app(tmp_path, monkeypatch) -> Callable[..., App]:
    """Makes a session, open on a page; what it writes goes to a temporary folder."""
    monkeypatch.chdir(tmp_path)
    # As on a server that has drawn a page before: every run starts with app.py (the folder's name
    # pages/ would make Streamlit run a page alone until then).
    begin = PagesManager.__init__

    def begin_with_navigation(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        PagesManager.uses_pages_directory = False

    monkeypatch.setattr(PagesManager, "__init__", begin_with_navigation)
    # Each session would look through all installed packages for components; the app has none.
    monkeypatch.setattr(
        BidiComponentManager, "discover_and_register_components", lambda *_, **__: None
    )
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(offered, "_SECONDS", PATIENCE)  # however busy the machine is
    monkeypatch.setattr(background, "PATIENCE", PATIENCE)
    # Each session on the sample draws populations for its forecast: 48 of them took a second.
    monkeypatch.setattr(populations, "N_POPULATIONS", 4)
    monkeypatch.setattr(drawn_areas, "_GRAINS", ((6, 24),))

    def make(
        page: str = "codebook", scenario: Scenario | None = None, *, key: str | None = None
    ) -> App:
        with monkeypatch.context() as start:
            if scenario is not None:  # instead of the sample
                start.setattr(autosave, "new_project", lambda: Project((scenario,)))
            if key is None:  # with a new project, whatever is saved
                start.setattr(autosave, "saved_keys", list)
            session = App(page, key)
        assert not session.exception
        return session

    return make


@pytest.fixture
def plan_only() -> Iterator[Callable[..., None]]:
    """Makes the app a shared server that plans only, with these limits."""
    with pytest.MonkeyPatch.context() as environment:

        def serve(**limits: int) -> None:
            settings = ServerSettings(planning_only=True, limits=Limits(**limits))
            for name, value in settings.variable.items():
                environment.setenv(name, value)
            server_settings.cache_clear()

        yield serve
    server_settings.cache_clear()


@pytest.fixture
def records(tmp_path) -> Path:
    """A copy of some of the sample's records, in a folder of their own."""
    lines = (sample_data_folder() / "household.csv").read_text().splitlines(keepends=True)
    path = tmp_path / "data" / "survey.csv"
    path.parent.mkdir()
    path.write_text("".join(lines[:501]))
    return path


def set_up(session: App, records: Path, output: Path | None = None) -> App:
    """Name the records of a release, and its folder."""
    session.radio(key="source").set_value("A file or folder on this computer").run()
    session.text_input(key="data path").set_value(str(records)).run()
    if output is not None:
        session.text_input(key="output").set_value(str(output)).run()
    return session


def run_button(session: App) -> Any:
    return session.button_of("Run the release")


def confirmed_run(session: App) -> App:
    """Press the button of a release, and confirm what the dialog repeats."""
    return open_dialog(session).press("Spend")


def open_dialog(session: App) -> App:
    """Press the button of a release, and type what its dialog wants."""
    session.press("Run the release")
    session.text_input(key="confirmed name").set_value(session.scenario.name)
    return session


def finish(session: App) -> App:
    """Wait for the release that goes on."""
    session.session_state[RELEASE_TASK].wait(PATIENCE)
    return session.run()


def made(session: App) -> App:
    """Wait until nothing is being made of what Results shows; the work may be done already."""
    while POSTPROCESSING in session.session_state:
        session.session_state[POSTPROCESSING][0].wait(PATIENCE)
        session.run()
    return session


@pytest.fixture
def small() -> Scenario:
    """Three attributes, all tables of up to two of them."""
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    return Scenario(domain, WorkloadRequest(order=2), record_noun="people")


def all_up_to_three(n_attributes: int) -> Scenario:
    domain = rp.Domain.from_sizes({f"a{i:02}": 10 for i in range(n_attributes)})
    return Scenario(domain, WorkloadRequest(order=3))


@pytest.fixture
def many() -> Scenario:
    """Fifty attributes, all 20,876 tables of up to three of them: more than are ever drawn."""
    return all_up_to_three(50)


@pytest.fixture
def very_many() -> Scenario:
    """A hundred attributes, all 166,751 tables of up to three of them."""
    return all_up_to_three(100)


# Names that Markdown, LaTeX, HTML and Streamlit's own directives would read as something else.
HOSTILE = ["**bold**", "$x$ $y$", "<b>a</b>", "[a](http://example.com)", ":red[b]", "a_b_c", "`x`"]


@pytest.fixture
def hostile() -> Scenario:
    """Attribute names that are full of formatting."""
    domain = rp.Domain.from_sizes(dict.fromkeys(HOSTILE, 3))
    return Scenario(domain, record_noun="<i>people</i> **x**")


def choose_objective(session, objective: str) -> None:
    """On the Plan page."""
    session.selectbox(key="objective").set_value(objective).run()
