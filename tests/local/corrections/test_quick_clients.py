"""Clients made quickly do what others do, and share nothing that is their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.client import ClientCreator
from botocore.hooks import EventAliaser
from moto import mock_aws
from moto.core import responses

from local.corrections.quick_clients import quick_clients

PATCHED: tuple[tuple[Any, str], ...] = (
    (botocore.session, "create_loader"),
    (ClientCreator, "_load_service_model"),
    (ClientCreator, "_create_methods"),
    (EventAliaser, "_alias_event_name"),
    (responses, "method_names_from_class"),
)


@pytest.fixture
def quick() -> Iterator[None]:
    with quick_clients():
        yield


def client(region: str, key: str = "one", service: str = "ec2") -> Any:
    session: Any = boto3.Session(key, "secret", region_name=region)
    return session.client(service)


@pytest.mark.usefixtures("quick")
def test_clients_of_a_service_share_the_model_and_nothing_else() -> None:
    first, second = client("us-east-1"), client("eu-west-1", "two")
    assert first.meta.service_model is second.meta.service_model
    assert (first.meta.region_name, second.meta.region_name) == ("us-east-1", "eu-west-1")
    assert first._get_credentials().access_key == "one"
    assert second._get_credentials().access_key == "two"
    heard: list[str] = []
    first.meta.events.register("before-call.ec2", lambda **_: heard.append("first"))
    with mock_aws():
        second.describe_vpcs()
        assert heard == []
        first.describe_vpcs()
    assert heard == ["first"]


@pytest.mark.usefixtures("quick")
def test_what_a_session_adds_to_its_clients_stays_with_them() -> None:
    session = botocore.session.get_session()
    session.register("creating-client-class.ec2", lambda class_attributes, **_: class_attributes.update(ours=1))
    made: Callable[..., Any] = session.create_client
    assert made("ec2", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b").ours == 1
    assert not hasattr(client("us-east-1"), "ours")


@pytest.mark.usefixtures("quick")
def test_the_methods_and_the_answers_are_the_same() -> None:
    with mock_aws():
        names = [one["VpcId"] for one in client("us-east-1").describe_vpcs()["Vpcs"]]
        assert names == [one["VpcId"] for one in client("us-east-1").describe_vpcs()["Vpcs"]]
        assert len(names) == 1
        address = client("us-east-1", service="s3").generate_presigned_url("list_buckets")
    assert address.startswith("https://s3")
    assert callable(client("us-east-1", service="dynamodb").get_item)


def test_everything_is_put_back() -> None:
    before = [getattr(place, name) for place, name in PATCHED]
    with quick_clients():
        assert all(getattr(place, name) is not kept for (place, name), kept in zip(PATCHED, before, strict=True))
    assert [getattr(place, name) for place, name in PATCHED] == before
