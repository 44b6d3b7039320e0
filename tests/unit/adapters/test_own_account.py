"""Clients of our own account's services."""

from __future__ import annotations

from collections import Counter

import pytest
from botocore.loaders import JSONFileLoader

from stockyard.adapters import own_account


def test_clients_share_what_botocore_reads_from_files(monkeypatch: pytest.MonkeyPatch) -> None:
    own_account._descriptions.cache_clear()
    read: Counter[str] = Counter()
    load = JSONFileLoader.load_file

    def load_and_count(self: JSONFileLoader, path: str) -> object:
        document = load(self, path)
        if document is not None:
            read[path] += 1
        return document

    monkeypatch.setattr(JSONFileLoader, "load_file", load_and_count)
    for service in ("dynamodb", "events", "dynamodb"):
        own_account.client(service, "us-east-1")
    assert any(path.endswith("endpoints") for path in read)
    assert set(read.values()) == {1}


def test_clients_keep_standard_retries_and_the_settings_asked_for() -> None:
    config = own_account.client("events", "eu-west-1", read_timeout=7).meta.config
    assert (config.retries["mode"], config.retries["total_max_attempts"]) == ("standard", 4)
    assert (config.read_timeout, config.region_name) == (7, "eu-west-1")
