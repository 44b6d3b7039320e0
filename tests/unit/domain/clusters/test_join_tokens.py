"""Tokens that are derived: kubeadm's form, one for each attempt, unknown without the key."""

from __future__ import annotations

import re

import pytest

from stockyard.domain.clusters.join_tokens import join_token

CLAIM = "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV"


def test_join_token_has_kubeadm_format_and_is_deterministic() -> None:
    token = join_token(b"key", CLAIM, 1)
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", token)
    assert token == join_token(b"key", CLAIM, 1)


def test_join_token_depends_on_key_claim_and_attempt() -> None:
    tokens = {
        join_token(key, claim, attempt)
        for key in (b"key", b"yek")
        for claim in (CLAIM, CLAIM[:-1] + "W")
        for attempt in (1, 2, 11)
    }
    assert len(tokens) == 12
    assert len({token[:6] for token in tokens}) == 12


def test_join_token_requires_key() -> None:
    with pytest.raises(ValueError, match="needs the installation's key"):
        join_token(b"", CLAIM, 1)
