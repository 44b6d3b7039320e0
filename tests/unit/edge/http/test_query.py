"""Query parameters are known, typed and given once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.edge.http.query import DRY_RUN, PAGE, TAG, Query, read, tagged
from stockyard.errors import InvalidInput

DECLARED = (
    Query("flag", "", "boolean"),
    Query("size", "", "integer", minimum=1, maximum=200),
    Query("any", "", "integer"),
    Query("status", "", values=("ready", "failed")),
    Query("text", ""),
    TAG,
)


def parsed(raw):
    return read({"rawQueryString": raw}, DECLARED)


def test_parameters_of_each_type_are_read():
    assert parsed("flag=true&size=200&any=-7&status=ready&text=a%20b%2B") == {
        "flag": True,
        "size": 200,
        "any": -7,
        "status": "ready",
        "text": "a b+",
    }
    assert parsed("flag=false") == {"flag": False}
    assert parsed("") == {}


@pytest.mark.parametrize(
    ("values", "text"), [(("secret",), "form must be secret."), (("a", "b"), "form must be one of a, b.")]
)
def test_values_that_there_are_are_named(values, text):
    with pytest.raises(InvalidInput) as refused:
        read({"rawQueryString": "form=other"}, (Query("form", "", values=values),))
    assert refused.value.detail == text
    assert [(fault.pointer, f"form {fault.detail}") for fault in refused.value.errors] == [("/form", text)]


@pytest.mark.parametrize(
    ("raw", "name"),
    [("flag=1", "flag"), ("size=0", "size"), ("text=", "text"), ("tag=env", "tag"), ("text=a&text=a", "text")],
)
def test_a_fault_of_a_parameter_names_the_parameter(raw, name):
    with pytest.raises(InvalidInput) as refused:
        parsed(raw)
    assert [fault.pointer for fault in refused.value.errors] == [f"/{name}"]


def test_event_without_raw_query_is_read():
    assert read({"queryStringParameters": {"text": "a&b"}}, DECLARED) == {"text": "a&b"}
    assert read({}, DECLARED) == {}


@pytest.mark.parametrize(
    "raw",
    [
        "other=1",
        "flag=True",
        "flag=1",
        "flag=",
        "size=0",
        "size=201",
        "size=1.0",
        "size=+1",
        "size=²",
        "size=99999999999999999999",
        "any=--1",
        "status=gone",
        "text=" + "x" * 1025,
        "text=a&text=a",
        "text=%ff",
        "tag=env",
        "tag=%3Ddev",
        "&".join(f"x{n}=1" for n in range(60)),
    ],
)
def test_invalid_queries_are_refused(raw):
    with pytest.raises(InvalidInput):
        parsed(raw)


def test_tag_filter_is_used_unchanged():
    tags = {"env": "dev", "a=b": "c=d", "empty": ""}
    assert parsed("tag=env%3Ddev") == {"tag": "env=dev"}
    assert all(tagged(tags, tag) for tag in (None, "env=dev", "a=b=c=d", "empty="))
    assert not any(tagged(tags, tag) for tag in ("env=", "env=d", "a=b", "a=c=d"))


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("limit", "; did you mean page_size?"),
        ("per_page", "; did you mean page_size?"),
        ("pageSize", "; did you mean page_size?"),
        ("maxResults", "; did you mean page_size?"),
        ("cursor", "; did you mean page_token?"),
        ("next_page_token", "; did you mean page_token?"),
        ("dryrun", "; did you mean dry_run?"),
        ("dry-run", "; did you mean dry_run?"),
        ("satus", "; did you mean status?"),
        ("colour", "."),
    ],
)
def test_who_names_another_parameter_is_told_the_one_that_there_is(name, end):
    with pytest.raises(InvalidInput) as refused:
        read({"rawQueryString": f"{name}=1"}, (*PAGE, DRY_RUN, *DECLARED))
    assert refused.value.detail == f"There is no query parameter '{name}' here{end}"


def test_no_parameter_is_named_that_a_route_has_not():
    with pytest.raises(InvalidInput, match=r"'limit' here\.$"):
        parsed("limit=1")


def test_unknown_parameter_is_named_in_printable_characters():
    with pytest.raises(InvalidInput, match=r"'dry\?run'"):
        parsed("dry%0Arun=1")


@given(st.text())
def test_any_query_is_read_or_refused(raw):
    try:
        values = parsed(raw)
    except InvalidInput:
        return
    assert set(values) <= {declared.name for declared in DECLARED}
