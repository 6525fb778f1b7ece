"""Records on their way: they come into no file but those that a run is said to write.

Every file that the program opens for writing is seen, also one that is gone at once.
"""

import json
import re
import shutil
import sqlite3
import ssl
import subprocess
import threading
import time
from contextlib import closing
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection

import rpexplore as rp
from rpexplore.common.installation import TOKEN_PARAMETER, TOKEN_VARIABLE
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import FILENAME
from tests.support.planning_server import PATIENCE, Browser, answered, free_port
from tests.support.reverse_proxy import needs_nginx, reverse_proxy
from tests.support.written_files import Written, needs_strace

ROOT = Path(__file__).parents[2]
WORD = "Kanarienvogel"  # in every record, in a column that no plan names
N = 50_000  # records: 2 MB of text, as what is smaller may be kept in memory all the same


@pytest.fixture
def records() -> pd.DataFrame:
    ages = ["young", "old"] * (N // 2)
    people = [f"{WORD}-{number}" for number in range(N)]
    return pd.DataFrame({"age": ages, "sex": "F", "person": people})


@pytest.fixture
def written(tmp_path) -> Written:
    return Written(tmp_path)


@pytest.fixture
def by_day(records, tmp_path, postgres) -> dict[str, str]:
    """The records in data/, in two kinds of files, and on a server, whose address is returned."""
    data = tmp_path / "data"
    (data / "parts").mkdir(parents=True)
    records[::2].to_csv(data / "parts/a.csv", index=False)
    records[1::2].to_csv(data / "parts/b.csv.gz", index=False)
    records.to_csv(data / "people.csv", index=False)
    records.assign(age="unheard of").to_csv(data / "refused.csv", index=False)
    (data / "towns.csv").write_text("town,sex\n" + "N|1,F\n" * 40)
    postgres.source(
        pa.table({name: pa.array(records[name], pa.string()) for name in records}), "people"
    )
    return {"SERVER": postgres.url}


@pytest.fixture
def stored(by_day, records, tmp_path, postgres) -> dict[str, str]:
    """In every other kind of source as well; connections to databases by their names."""
    data = tmp_path / "data"
    records.to_parquet(data / "people.parquet")
    for name, write in (("sav", pyreadstat.write_sav), ("dta", pyreadstat.write_dta)):
        write(records, data / f"people.{name}")
    with duckdb.connect(data / "people.duckdb") as database:
        database.execute("CREATE TABLE people AS FROM records")
    with closing(sqlite3.connect(data / "people.db")) as database:
        records.to_sql("people", database, index=False)
    return {
        **by_day,
        "ADBC": f"adbc+{postgres.url}",
        "DUCKDB": f"duckdb://{data / 'people.duckdb'}",
        "SQLITE": f"sqlite://{data / 'people.db'}",
    }


VERBS = """
from pathlib import Path
import pandas, polars, pyarrow
from click.testing import CliRunner
import rpexplore as rp
from rpexplore.cli.main import cli

def run(*arguments, code=0):
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, (arguments, done.output)

def release(*records, code=0, dry=False):
    out = f"out/{len([*Path('out').iterdir()])}"
    options = ("--person-id", "person", "--ledger", "out/ledger.sqlite", "--out", out)
    if dry:  # reads as the run does
        run("release", "plan.json", *records, *options, "--dry-run", code=code)
    run("release", "plan.json", *records, *options, code=code)

for name in FILES:
    release(f"data/{name}", dry=name == "people.csv")
    run("ledger", f"data/{name}", "--ledger", "out/ledger.sqlite")
release("data/refused.csv", code=2, dry=True)
run("schema", "data/people.sav", code=2)  # it has no labels
people = ("--table", "people")
for database in DATABASES:
    release("--database", database, *people, dry=database == "SERVER")
for server in STREAMED:
    release("--database", server, *people, "--stream")
plan = rp.Plan.load("plan.json")
frame = pandas.read_csv("data/people.csv")
frames = [frame, polars.from_pandas(frame), pyarrow.Table.from_pandas(frame)]
for table in frames[:N_FRAMES]:
    out, ledger = f"out/{type(table).__module__}", "out/ledger.sqlite"
    rule = rp.PersonRule("person", 1)
    rp.release(plan, table, out, name="people", ledger=ledger, person_rule=rule)
"""


BY_DAY = (["parts"], [], ["SERVER"], 1)
BY_NIGHT = (
    ["people.csv", "people.parquet", "people.sav", "people.dta", "parts"],
    ["SERVER", "DUCKDB", "SQLITE"],
    ["SERVER", "ADBC"],
    3,
)


@needs_strace
@pytest.mark.parametrize(
    ("sources", "store"),
    [(BY_DAY, "by_day"), pytest.param(BY_NIGHT, "stored", marks=pytest.mark.nightly)],
    ids=["some sources", "all sources"],
)
def test_no_verb_puts_down_what_it_reads_of_any_source(sources, store, written, tmp_path, request):
    variables = request.getfixturevalue(store)
    values = {"age": rp.Categories(("young", "old")), "sex": rp.Categories(("F", "M"))}
    domain = rp.Domain(tuple(rp.Attribute(name, of) for name, of in values.items()))
    budget = rp.Budget(rho=1, max_records_per_person=1)
    tables = rp.Workload.all_up_to(domain, 2)
    plan_tables(tables, loss=rp.SumOfVariances(), budget=budget).save(tmp_path / "plan.json")
    out, home = tmp_path / "out", tmp_path / "home"
    out.mkdir()
    names = "FILES, DATABASES, STREAMED, N_FRAMES"
    verbs = f"{names} = {sources!r}\n{VERBS}"
    written.run(verbs, cwd=tmp_path, RPEXPLORE_HOME=str(home), **variables)
    assert not beside_ledgers(written.outside(out, home))
    places = (out.rglob("*"), home.rglob("*"), (tmp_path / "data").rglob(f"*{FILENAME}*"))
    files = [path for path in chain(*places) if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files if WORD.encode() in path.read_bytes()]


def beside_ledgers(paths: set[str]) -> set[str]:
    """The paths but for those of the ledgers that lie beside records."""
    return {path for path in paths if FILENAME not in Path(path).name}


IN_BOXES = "from tests.attacks.test_temporary_files import in_every_box; in_every_box()"


@needs_strace
@pytest.mark.nightly
def test_no_box_of_the_app_puts_down_what_is_dropped_there(written, stored, tmp_path):
    home, out = tmp_path / "home", tmp_path / "out"
    out.mkdir()
    written.run(IN_BOXES, cwd=tmp_path, RPEXPLORE_HOME=str(home), PYTHONPATH=str(ROOT))
    assert not beside_ledgers(written.outside(home, out))
    assert not [path for path in home.rglob("*.*") if WORD.encode() in path.read_bytes()]


def in_every_box() -> None:
    """Drop the records in data/ into every box of one's own app."""
    from pages.components.codebook.files import FILE
    from rpexplore.scenarios.scenario import Scenario
    from rpexplore.scenarios.workload_request import WorkloadRequest
    from rpexplore.workload.query_definitions import stated_from_text
    from tests.pages.conftest import App, set_up
    from tests.pages.test_areas import CODEBOOK, TOWNS, alone, drop, planned, show
    from tests.pages.test_odd_texts import basis, choose

    tried = []

    def drop_records(session: App, key: str, *endings: str) -> None:
        for ending in endings:
            box = next(box for box in session.file_uploader if (box.key or "").startswith(key))
            kind = ending if ending in ("sav", "dta", "parquet") else "csv"
            content = Path(f"data/people.{kind}").read_bytes()
            box.set_value([(f"people.{ending}", content, "")]).run()
            assert not session.exception, key
        tried.append(key)

    domain = rp.Domain.from_sizes({"age": 3, "sex": 2})
    queries = stated_from_text(domain, "age < 2 ± 3")
    scenario = Scenario(domain, WorkloadRequest(order=1), query_list=queries)
    session = App("codebook")
    session.scenario = scenario
    session.run()
    choose("codebook source", FILE)(session)
    drop_records(session, "codebook", "csv", "parquet", "sav", "dta")
    drop_records(session, "expected margin", "csv")
    basis("custom")(session.open("workload"))
    drop_records(session, "file of all age", "csv", "npy")
    drop_records(session.open("queries").unfold("query files"), "query file", "csv")
    drop_records(session.open("scenarios"), "project file", "json", "zip")
    drop_records(session.open("home"), "project file on home", "json", "zip")
    set_up(session.open("release"), Path("data/people.csv"))
    session.radio(key="plan to run").set_value("adaptive").run()
    drop_records(session, "uploaded adaptive plan", "json")
    session.radio(key="plan to run").set_value("unbiased").run()
    drop_records(session, "approval files", "json")
    drop_records(session.open("areas"), "area files", "json", "csv", "parquet")
    codebook = json.dumps(CODEBOOK).encode()
    session.scenario = scenario.replaced(query_list=None)
    drop(alone(session), ("towns.json", codebook, ""), ("towns.csv", TOWNS, ""))
    show(session, "Map")
    plan = planned(session).alone
    drop_records(show(session, "Plan"), "file of area totals", "csv")
    drop_records(show(session, "Map"), "area map file", "json")
    rp.release(plan, "data/towns.csv", "out/towns")
    session.open("results").text_input(key="results folder").set_value("out/towns").run()
    drop_records(session, "file of lists of areas", "csv")
    drop_records(session, "file of known totals", "csv")
    Path("out/few.csv").write_text("age,sex\n0,1\n", "utf-8")
    rp.release(scenario.table_plan(), "out/few.csv", "out/few")
    session.open("results").text_input(key="results folder").set_value("out/few").run()
    drop_records(session, "file of known totals of tables", "csv")

    # Each call on the pages, but for those in the module of the two functions.
    shared = ROOT / "pages/components/shared/files.py"
    pages = [path for path in (ROOT / "pages").rglob("*.py") if path != shared]
    text = "".join(path.read_text("utf-8") for path in pages)
    calls = re.findall(r"\b(?:file_uploader|upload|upload_several)\(", text)
    assert len(tried) == len(calls), "drop records into the new box here as well"


@needs_strace
def test_what_is_uploaded_is_not_written_while_it_arrives(written, tmp_path):
    token, port, home = "token", free_port(), tmp_path / "home"
    command = [*written.command, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env=written.environment | {"RPEXPLORE_HOME": str(home), TOKEN_VARIABLE: token},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while answered(f"http://127.0.0.1:{port}/_stcore/health") != 200:
            assert server.poll() is None
            time.sleep(0.1)
        browser = Browser(port, f"/?{TOKEN_PARAMETER}={token}")
        with browser.connected() as connection:
            session = name_of_session(connection)
            content = (f"{WORD}\n" * N * 4).encode()
            assert browser.upload(session, "file", content) == 204
    finally:
        server.communicate(timeout=PATIENCE)  # closes its input, with which the app ends
    assert not written.outside(home)


def name_of_session(connection: ClientConnection) -> str:
    """As the server tells it at the begin of the first run."""
    asked, said = BackMsg(), ForwardMsg()
    asked.rerun_script.page_name = ""
    connection.send(asked.SerializeToString())
    while not said.new_session.initialize.session_id:
        said.ParseFromString(bytes(connection.recv(PATIENCE, decode=False)))
    return said.new_session.initialize.session_id


class Behind(BaseHTTPRequestHandler):
    """What is behind the proxy: it takes all that it is sent."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@needs_nginx
def test_the_proxy_passes_on_uploads_without_writing_them(tmp_path):
    port = free_port()
    with HTTPServer(("127.0.0.1", 0), Behind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with reverse_proxy(tmp_path, port=port, behind=server.server_port):
            # Where it would write what it is sent; without it such a request fails.
            shutil.rmtree(tmp_path / "client_body")
            trusting = ssl._create_unverified_context()
            with closing(
                HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=trusting)
            ) as proxy:
                proxy.request("PUT", "/plan/file", b"x" * 5_000_000)
                assert proxy.getresponse().status == 204
        server.shutdown()
