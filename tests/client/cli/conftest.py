"""Fixtures that tests of the command line share."""

from __future__ import annotations

import pytest

from tests.client.cli.feeds import EVENTS, page


@pytest.fixture
def feed(api):
    """Events that come one page after the other; then somebody interrupts."""

    def come(*pages):
        api.answer("GET", EVENTS, page())
        for number, items in enumerate(pages, 2):
            api.answer("GET", EVENTS, page(*items, cursor=f"evt_{number:010}~"))
        api.fault("GET", EVENTS, KeyboardInterrupt())

    return come
