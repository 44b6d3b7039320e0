"""Clients of our own account's services."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from botocore.session import Session

from local.testing.fresh_wiring import fresh_wiring
from stockyard import wiring
from stockyard.adapters import own_account
from stockyard.adapters.dynamodb import calls
from stockyard.adapters.dynamodb.answers import AnswerParsers


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


def test_clients_of_one_session_have_their_own_parsers_and_settings() -> None:
    session = own_account.make_session()
    table: Any = calls.client("us-east-1", session)
    bus = own_account.client("events", "eu-west-1", session=session, read_timeout=7)
    assert isinstance(table._endpoint._response_parser_factory, AnswerParsers)
    assert not isinstance(bus._endpoint._response_parser_factory, AnswerParsers)
    assert (table.meta.config.read_timeout, bus.meta.config.read_timeout) == (5, 7)
    assert (table.meta.region_name, bus.meta.region_name) == ("us-east-1", "eu-west-1")


def test_a_process_makes_one_session_for_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[Session] = []
    make = own_account.make_session

    def make_and_count() -> Session:
        sessions.append(session := make())
        return session

    monkeypatch.setattr(own_account, "make_session", make_and_count)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with fresh_wiring():
        assert wiring._client("events").meta.service_model.service_name == "events"
        assert wiring._client("stepfunctions").meta.service_model.service_name == "stepfunctions"
    assert len(sessions) == 1
