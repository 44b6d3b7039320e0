"""Documents as replies."""

from __future__ import annotations

import json

import pytest

from stockyard.edge.replies import reply


@pytest.mark.parametrize("document", [{}, {"name": "a"}, {"name": "a", "items": []}])
def test_members_that_are_text_already_stand_behind_the_others(document):
    answer = reply(200, document, {}, texts={"lines": '[{"hour":0.5}]', "more": "null"})
    assert json.loads(answer.body) == {**document, "lines": [{"hour": 0.5}], "more": None}
    assert reply(200, document, {}).body == json.dumps(document, separators=(",", ":"))
