"""A running app to attack."""

from tests.browser.conftest import browser, page, server

__all__ = ["browser", "page", "server"]
