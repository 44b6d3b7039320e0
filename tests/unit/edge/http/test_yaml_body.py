"""Bodies of YAML: what JSON could say, and nothing else."""

from __future__ import annotations

import pytest

from stockyard.edge.http.yaml_body import parse
from stockyard.errors import MalformedBody


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("On", "On"),
        ("yes", "yes"),
        ("n", "n"),
        ("true", True),
        ("False", False),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("-5", -5),
        ("0", 0),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("1.5e-3", 0.0015),
        ("120m", "120m"),
        ("~", None),
        ("", None),
        ("null", None),
        ("'5'", "5"),
        (".inf", ".inf"),
        ("=", "="),
        ("*", None),
        ('"*"', "*"),
        ("|\n  a\n  b", "a\nb"),
    ],
)
def test_plain_scalars_have_types_of_json(text, value):
    if text == "*":
        with pytest.raises(MalformedBody):
            parse(b"a: *\n", 32)
        return
    assert parse(f"a: {text}".encode(), 32) == [{"a": value}]


def test_empty_documents_are_skipped():
    assert parse(b"---\na: 1\n---\n# nothing\n---\n[1, {b: 2}]\n...\n", 32) == [{"a": 1}, [1, {"b": 2}]]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"# nothing",
        b"a: 1\na: 2",
        b"1: a",
        b"true: a",
        b"[a]: b",
        b"a: &x 1\nb: *x",
        b"a: &x [*x]",
        b"a: !!binary aGVsbG8=",
        b"a: !!set {x}",
        b"a: !!timestamp 2026-01-01",
        b"a: !!bool zzz",
        b'a: !!bool ""',
        b'a: !!int ""',
        b'a: !!int "_"',
        b"a: !!bool yes",
        b"a: !!str x",
        b"a: ! x",
        b"!!map {a: 1}",
        b"a: !!python/object/apply:os.system [x]",
        b"a: 1e999",
        b"a: [",
        b"a: b: c",
        b"\tx: 1",
        b"\xff",
        b'a: "\\ud800"',
        b"[" * 33 + b"]" * 33,
        b"- " * 33 + b"x",
        b"{" * 100_000,
    ],
)
def test_yaml_beyond_json_is_refused(raw):
    with pytest.raises(MalformedBody) as refused:
        parse(raw, 32)
    assert "canary" not in refused.value.detail


def test_errors_do_not_quote_the_body():
    with pytest.raises(MalformedBody) as refused:
        parse(b"canary: [canary", 32)
    assert "canary" not in refused.value.detail


def test_deepest_allowed_nesting_is_read():
    (document,) = parse(b"[" * 32 + b"]" * 32, 32)
    assert str(document) == "[" * 32 + "]" * 32
