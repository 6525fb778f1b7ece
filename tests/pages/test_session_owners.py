"""Whose a session is on a shared server, tried by who knows its name and speaks to the server."""

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from rpexplore.serving.accounts import Account
from tests.support.planning_server import (
    PATIENCE,
    Browser,
    PlanningServer,
    free_port,
    planning_server,
)

BUDGET = "0.321"


def run(connection: ClientConnection, **typed: str) -> tuple[str, dict[str, str]]:
    """The session's name, and its fields by their labels, after a run of the page Plan."""
    asked = BackMsg()
    asked.rerun_script.page_name = "plan"
    for field, value in typed.items():
        widget = asked.rerun_script.widget_states.widgets.add()
        widget.id, widget.string_value = field, value
    connection.send(asked.SerializeToString())
    session, fields, deadline = "", {}, time.monotonic() + PATIENCE
    while "Privacy budget ρ" not in fields:
        said = ForwardMsg()
        said.ParseFromString(bytes(connection.recv(deadline - time.monotonic(), decode=False)))
        session = said.new_session.initialize.session_id or session
        element = said.delta.new_element
        if element.WhichOneof("type") == "text_input":
            fields[element.text_input.label] = element.text_input.id
    return session, fields


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[PlanningServer]:
    folder = tmp_path_factory.mktemp("shared")
    with planning_server(folder, "--no-login", port=free_port()) as server:
        yield server


def test_the_name_of_a_session_opens_nothing_to_another_account(shared):
    ada, ben = Browser(shared.port), Browser(shared.port)
    with ada.connected() as of_ada:
        session, fields = run(of_ada)
        run(of_ada, **{fields["Privacy budget ρ"]: BUDGET})
        (folder,) = (shared.home / "accounts").iterdir()
        assert ben.upload(session, "file", b"x") == 403
        assert ada.upload(session, "file", b"x") == 204
        assert ben.upload(session, "file", method="DELETE") == 403
        for is_going in (True, False):
            if not is_going:
                of_ada.close()
            for headers in ({}, {"X-Rpexplore-Account": Account(folder.name).header}):
                with ben.connected(session, **headers) as of_ben:
                    # What is typed is taken before the page is drawn, and saved for who typed it.
                    assert run(of_ben, **{fields["Privacy budget ρ"]: "0.9"})[0] != session
    assert not [text for text in shared.home.rglob("*.json") if "0.9" in text.read_text("utf-8")]
    with ada.connected(session) as again:
        assert run(again)[0] == session  # who breaks off goes on


@pytest.mark.nightly
def test_uploads_of_a_session_have_a_limit_together(shared):
    ada = Browser(shared.port)
    with ada.connected() as connection:
        session, _ = run(connection)
        statuses = [ada.upload(session, f"file-{n}", b"x" * 10**7) for n in range(7)]
        assert statuses == [204] * 5 + [413] * 2
        assert ada.upload(session, "file-0", method="DELETE") == 204
        assert ada.upload(session, "file-7", b"x" * 10**7) == 204
    limits = [line["limit"] for line in shared.events if "limit" in line]
    assert limits == ["uploads_mb"] * 2


def test_a_browser_says_no_more_at_once_than_a_page_holds(shared):
    """One message of 21 MB, all small values, took 280 MB."""
    ada = Browser(shared.port)
    with ada.connected() as connection:
        run(connection)
        asked = BackMsg()
        asked.rerun_script.query_string = "x" * 4_000_000
        connection.send(asked.SerializeToString())
        with suppress(ConnectionClosed):
            while True:
                connection.recv(PATIENCE)
        assert connection.close_code == 1009
    with ada.connected() as again:
        run(again)  # others, and the same browser, are served
    assert "message_mb" in [line["limit"] for line in shared.events if "limit" in line]


@pytest.mark.nightly
def test_no_browser_clears_what_others_keep(shared):
    ada, ben = Browser(shared.port), Browser(shared.port)
    with ada.connected() as of_ada, ben.connected() as of_ben:
        run(of_ada)
        ended = sum(line["event"] == "session ended" for line in shared.events)
        of_ben.send(BackMsg(clear_cache=True).SerializeToString())
        run(of_ben)  # which is answered after that
        assert sum(line["event"] == "session ended" for line in shared.events) == ended
        of_ben.send(b"\xff no message")
        with suppress(ConnectionClosed):
            list(of_ben)
        assert of_ben.close_code == 1002  # Streamlit's own answer to what it cannot read
