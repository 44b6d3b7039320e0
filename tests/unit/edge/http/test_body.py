"""JSON without surprises."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.edge.http.body import LARGE, LIMIT, MAX_DEPTH, check_media_type, inflated, parse, raw_body
from stockyard.errors import BodyTooLarge, MalformedBody, UnsupportedMediaType

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(json_values)
def test_json_is_read_unchanged(value):
    assert parse(json.dumps(value).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_malformed(raw):
    with suppress(MalformedBody):
        parse(raw)


@pytest.mark.parametrize("number", ["1.0", "1e0", "10E-1"])
def test_integral_fractions_are_read_as_integers(number):
    value = parse(number.encode())
    assert (value, type(value)) == (1, int)


def test_other_fractions_are_kept():
    assert parse(b"1.5") == 1.5


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", '{"a":1,"a":1}', '{"x":{"a":1,"a":2}}', "'a'", "{} {}"])
def test_malformed_json_is_refused(text):
    with pytest.raises(MalformedBody):
        parse(text.encode())


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("{bad", "line 1, column 2: a name in double quotes is expected"),
        ('{"a":\n  oops}', "line 2, column 3: a value is expected"),
        ("", "line 1, column 1: a value is expected"),
        ('{"a" 1}', "line 1, column 6: a colon is expected"),
        ('["a" "b"]', "line 1, column 6: a comma or the end of the list or object is expected"),
        ("{} {}", "line 1, column 4: the end is expected"),
        ('["a', "line 1, column 2: a string begins here that has no end"),
        ('["a\nb"]', "line 1, column 4: a string has no line ends or other control characters"),
        ('["\\x"]', "line 1, column 3: JSON has no such escape"),
    ],
)
def test_malformed_json_says_where_and_what_is_expected(text, position):
    with pytest.raises(MalformedBody) as refused:
        parse(text.encode())
    assert refused.value.detail == f"The body is not JSON: {position}."


def test_nesting_is_limited_outside_of_texts():
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(MalformedBody, match="deeper"):
        parse(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
    assert parse(json.dumps('\\"' + "[" * 100).encode()) == '\\"' + "[" * 100
    within = [[], "[" * 100, {"{": "}" * 100}, "", "", "é"]
    assert parse(json.dumps(within, ensure_ascii=False).encode()) == within
    for texts in ('""', '"a", "[", "b"', '"\\\\"'):
        with pytest.raises(MalformedBody, match="deeper"):
            parse(f"[{texts}, {'[' * MAX_DEPTH}{']' * MAX_DEPTH}]".encode())


def test_errors_do_not_quote_the_body():
    with pytest.raises(MalformedBody) as caught:
        parse(b'{"secret": "canary-secret" oops}')
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_size_limit_applies_to_bytes():
    assert len(raw_body({"body": "x" * LIMIT})) == LIMIT
    with pytest.raises(BodyTooLarge):
        raw_body({"body": "é" * (LIMIT // 2) + "x"})
    with pytest.raises(BodyTooLarge):
        raw_body({"body": "A" * LIMIT * 3, "isBase64Encoded": True})


# --- compressed bodies ------------------------------------------------------------------------------------------------

GZIP = {"headers": {"content-encoding": "gzip"}}
BY_TYPE = {"headers": {"content-type": "application/gzip"}}


@pytest.mark.parametrize("event", [GZIP, BY_TYPE], ids=["encoding", "type"])
def test_compressed_body_is_limited_by_its_inflated_size(event):
    small = gzip.compress(b"x" * 1000)
    assert inflated(event, small, 1000) == b"x" * 1000
    with pytest.raises(BodyTooLarge):
        inflated(event, small, 999)
    assert inflated({"headers": {}}, small, 1) == small


def test_compression_bomb_is_not_inflated():
    bomb = gzip.compress(b"\0" * 50_000_000)
    with pytest.raises(BodyTooLarge):
        inflated(GZIP, bomb, LARGE)


@pytest.mark.parametrize(
    "raw",
    [b"plain", gzip.compress(b"x")[:-4], gzip.compress(b"x") + b"more", gzip.compress(b"a") + gzip.compress(b"b")],
    # gzip writes the time, and all workers must collect tests of the same names
    ids=["plain", "cut short", "with more behind", "two streams"],
)
def test_incomplete_or_repeated_stream_is_malformed(raw):
    with pytest.raises(MalformedBody):
        inflated(GZIP, raw, 1000)


def test_only_large_routes_accept_compressed_bodies():
    event = {"headers": {"content-type": "application/json", "content-encoding": "gzip"}}
    assert check_media_type(event, patch=False, gzip=True) == "application/json"
    with pytest.raises(UnsupportedMediaType):
        check_media_type(event, patch=False)
    assert check_media_type(BY_TYPE, patch=False, gzip=True) == "application/gzip"
    with pytest.raises(UnsupportedMediaType):
        check_media_type(BY_TYPE, patch=False)
    with pytest.raises(UnsupportedMediaType):
        check_media_type({"headers": {**BY_TYPE["headers"], "content-encoding": "gzip"}}, patch=False, gzip=True)
    event["headers"]["content-encoding"] = "br"
    with pytest.raises(UnsupportedMediaType):
        check_media_type(event, patch=False, gzip=True)


@pytest.mark.parametrize("kind", ["application/yaml", "application/x-yaml", "text/yaml; charset=utf-8"])
@pytest.mark.parametrize("patch", [False, True])
def test_who_sends_yaml_is_told_where_it_is_taken(kind, patch):
    with pytest.raises(UnsupportedMediaType) as refused:
        check_media_type({"headers": {"content-type": kind}}, patch=patch)
    assert refused.value.detail.startswith("Send the body as application/json")
    assert refused.value.detail.endswith("in UTF-8; POST /v1/apply takes YAML.")


def test_where_yaml_is_taken_nothing_else_is_named():
    with pytest.raises(UnsupportedMediaType) as refused:
        check_media_type({"headers": {"content-type": "text/yaml"}}, patch=False, yaml=True)
    assert refused.value.detail == "Send the body as application/json or application/yaml in UTF-8."
