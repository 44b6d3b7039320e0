"""Placeholders stand for values: whatever a variable holds, the objects have the same fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.profiles.pack_templates import MAX_FILLED, VARIABLE, TemplateFault, Terms, documents, fill

TEXT = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {whole: {{ .profile.var.a }}, part: "x-{{ .profile.var.a }}"}
"""


@given(st.text(max_size=40))
def test_a_variable_adds_no_field(value: str) -> None:
    (item,) = documents(TEXT, Terms({(VARIABLE, "a"): value}))
    assert item["data"] == {"whole": value, "part": f"x-{value}"}
    assert set(item) == {"apiVersion", "kind", "metadata", "data"}


@given(st.one_of(st.integers(), st.booleans()))
def test_a_whole_value_keeps_its_type(value: Any) -> None:
    assert fill({"n": "{{ .profile.var.a }}"}, Terms({(VARIABLE, "a"): value})) == {"n": value}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: {{ .profile.var.b }}", "variable b"),
        ("a: [", "is no YAML"),
        ("a: &x 1\nb: *x", "alias"),
        ("kind: Pod", "no Kubernetes object"),
        ("{apiVersion: v1, kind: Pod, metadata: {}}", "metadata.name"),
    ],
)
def test_what_cannot_be_applied_is_refused(text: str, words: str) -> None:
    with pytest.raises(TemplateFault, match=words):
        documents(text, Terms({(VARIABLE, "a"): 1}))


def test_what_is_put_in_is_bounded_over_all_packs() -> None:
    """A variable in a value, and the value in a manifest, multiply each other."""
    terms = Terms({(VARIABLE, "a"): "x" * 20_000})
    (value,) = fill({"v": "{{ .profile.var.a }}" * 100}, terms).values()
    packs = terms.with_values([("v", value)])
    text = TEXT.replace(".profile.var.a", ".values.v")
    with pytest.raises(TemplateFault, match=f"has more than {MAX_FILLED} characters once its placeholders are filled"):
        documents(text, packs)
    assert documents(text, Terms(packs.values)), "of itself it has room"
