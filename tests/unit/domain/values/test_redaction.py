"""Texts of machines are freed of secrets in every form in which a machine prints them."""

from __future__ import annotations

import base64
import json

import pytest

from stockyard.domain.values.redaction import last_part, redact
from tests.harness.canaries import Output, canary, hits

KEY = base64.b64encode(b"a private key, which nobody may read" * 8).decode()
PEM = "\n".join(KEY[start : start + 64] for start in range(0, len(KEY), 64))


@pytest.mark.parametrize(
    "line",
    [
        "client_secret={}",
        '"client_secret": "{}"',
        "STOCKYARD_TOKEN={} /usr/bin/agent",
        "password : {}",
        "Authorization-Token: Bearer {}",
        "aws_secret_access_key = {}",
        "private-key:{}",
    ],
)
def test_what_is_named_as_a_secret_is_hidden(line: str) -> None:
    secret = canary().split('"')[0] + "%Ab1"
    text = redact(f"before\n{line.format(secret)}\nafter")
    assert hits({"secret": secret}, [Output("console", "of a machine", text)]) == []
    assert text.startswith("before\n")
    assert text.endswith("\nafter")


@pytest.mark.parametrize(
    "secret",
    [
        "abcdef.0123456789abcdef",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
        "0f" * 32,
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ],
)
@pytest.mark.parametrize("around", ["kubeadm join --token {} x", '"{}"', "{}", "({})"])
def test_secrets_are_known_by_their_form(secret: str, around: str) -> None:
    assert secret not in redact(around.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        f"one\n-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n-----END RSA PRIVATE KEY-----\ntwo",
        f"one\n-----BEGIN PRIVATE KEY-----\n{PEM}",
        f"{PEM[-70:]}\n-----END EC PRIVATE KEY-----\ntwo",
    ],
)
def test_keys_are_hidden_also_when_they_are_cut(text: str) -> None:
    redacted = redact(text)
    assert not any(line in redacted for line in PEM.splitlines())
    assert ("two" in redacted) is text.endswith("two")


def test_words_around_secrets_stay() -> None:
    text = redact("-----BEGIN SSH HOST KEY FINGERPRINTS-----\n256 SHA256:short root (ED25519)\nkubelet: tokens expire")
    assert "root (ED25519)" in text
    assert "kubelet: tokens expire" in text
    assert redact("Reached target cloud-init.target") == "Reached target cloud-init.target"


def test_control_characters_and_colours_go() -> None:
    text = redact("\x1b[0;32m  OK  \x1b[0m] ready\r\n\x1b]0;title\x07bell\x07\x00 caf\u00e9\ttab\rnext")
    assert text == "  OK  ] ready\nbell caf tab\nnext"


def test_long_texts_are_read_in_a_moment() -> None:
    worst = ("secret" * 100 + " = " + "-----BEGIN " * 50 + "\x1b[") * 100
    assert len(worst) > 64 * 1024
    redact(worst)


def test_last_part_begins_with_a_line() -> None:
    assert last_part("short", 10) == "short"
    assert last_part("one\ntwo\nthree", 9) == "three"
    assert last_part("x" * 20, 5) == "xxxxx"
    assert json.loads(json.dumps(last_part("a\n" * 4000, 4096))).count("\n") == 2047
