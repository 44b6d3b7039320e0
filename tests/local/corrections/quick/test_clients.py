"""Quickly made clients work like others, and share no state of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import botocore.hooks
import botocore.session
import pytest
from botocore.client import ClientCreator
from botocore.hooks import EventAliaser
from moto import mock_aws
from moto.core import responses

from local.aws.corrections.quick.clients import quick_clients

PATCHED: tuple[tuple[Any, str], ...] = (
    (botocore.session, "create_loader"),
    (ClientCreator, "_load_service_model"),
    (ClientCreator, "_create_methods"),
    (EventAliaser, "_alias_event_name"),
    (responses, "method_names_from_class"),
    (botocore.hooks, "accepts_kwargs"),
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


def test_the_next_local_cloud_of_a_process_reads_no_model_again() -> None:
    models = []
    for _ in range(2):
        with quick_clients():
            models.append(client("us-east-1").meta.service_model)
    assert models[0] is models[1]


@pytest.mark.usefixtures("quick")
def test_additions_of_a_session_stay_with_its_clients() -> None:
    session = botocore.session.get_session()
    session.register("creating-client-class.ec2", lambda class_attributes, **_: class_attributes.update(ours=1))
    create_client: Callable[..., Any] = session.create_client
    assert create_client("ec2", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b").ours == 1
    assert not hasattr(client("us-east-1"), "ours")


@pytest.mark.usefixtures("quick")
def test_quick_clients_have_the_same_methods_and_answers() -> None:
    with mock_aws():
        names = [vpc["VpcId"] for vpc in client("us-east-1").describe_vpcs()["Vpcs"]]
        assert names == [vpc["VpcId"] for vpc in client("us-east-1").describe_vpcs()["Vpcs"]]
        assert len(names) == 1
        address = client("us-east-1", service="s3").generate_presigned_url("list_buckets")
    assert address.startswith("https://s3")
    assert callable(client("us-east-1", service="dynamodb").get_item)


def test_the_correction_restores_everything() -> None:
    before = [getattr(owner, name) for owner, name in PATCHED]
    with quick_clients():
        assert all(
            getattr(owner, name) is not original for (owner, name), original in zip(PATCHED, before, strict=True)
        )
    assert [getattr(owner, name) for owner, name in PATCHED] == before
