"""The search for secrets finds them in every form in which they may be written."""

from __future__ import annotations

import base64
import json

import pytest

from tests.harness.canaries import MARKS, Output, canary, forms, hits

FIXED = f"abcdefghijKLMNOPQRST{MARKS}"


@pytest.mark.parametrize("written", sorted(forms(FIXED)))
def test_each_form_of_a_secret_is_recognised(written: str) -> None:
    outputs = [Output("log", "there", f"before {written} after")]
    assert hits({"it": FIXED}, outputs) == ["it in log there"]
    assert hits({"it": canary()}, outputs) == []


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_secret_inside_an_encoded_document_is_recognised(before: str) -> None:
    value = canary()
    once = base64.b64encode(f"{before}{json.dumps({'secret': value})} and more".encode())
    twice = base64.b64encode(before.encode() + once).decode()
    for text in (once.decode(), twice, value[:20]):
        assert hits({"it": value}, [Output("log", "there", text)]) == ["it in log there"]
