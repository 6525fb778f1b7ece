"""The server that the tests of databases use."""

from tests.data.conftest import postgres as postgres
