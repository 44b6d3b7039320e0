"""Variants of accounts: what their owners and organizations demand is asked besides the account's own policies."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.accounts import REGION
from local.aws.corrections.compute.placement_groups import placement_groups
from local.aws.corrections.compute.shared_networks import owner_of
from local.aws.permissions import table, variants
from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call
from local.aws.permissions.policies import Ask, denied_by
from local.fault_plan import Variant
from local.functions.invocation import Invocation
from local.functions.processes import Functions

ACCOUNT = "123456789012"


def run_instances(variant: Variant, tags: dict[str, str], *, encrypted: bool) -> list[Ask]:
    """The checks of a launch of one machine with a disk."""
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    parameters: dict[str, Any] = {
        "ImageId": "ami-12345678",
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": encrypted}}],
        "TagSpecifications": [{"ResourceType": kind, "Tags": pairs} for kind in ("instance", "volume")],
    }
    call = Call("ec2", "RunInstances", parameters, ACCOUNT, REGION)
    return list(table.asks(call, Account(ACCOUNT, REGION, variants.settings_of(variant))))


@pytest.mark.parametrize(
    ("tags", "encrypted", "denied"),
    [
        ({variants.DEMANDED: "a"}, True, set()),
        ({}, True, {"instance", "volume"}),
        ({variants.DEMANDED: "a"}, False, {"volume"}),
    ],
)
def test_guardrails_deny_what_has_no_tag_or_no_encryption(
    tags: dict[str, str], encrypted: bool, denied: set[str]
) -> None:
    with mock_aws():
        for variant, expected in (("guardrails", denied), ("new", set())):
            asks = run_instances(variant, tags, encrypted=encrypted)
            rules = variants.settings_of(variant).guardrails
            kinds = {ask.resource.rpartition(":")[2].partition("/")[0] for ask in asks if denied_by(rules, ask)}
            assert kinds == expected, variant


def test_a_shared_network_is_of_its_owner_and_what_is_ours_is_not() -> None:
    with mock_aws():
        ec2 = boto3.client("ec2", region_name=REGION)
        variants.begin(ACCOUNT, "shared-network")
        shared, own = (ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"] for number in (1, 2))
        ec2.create_tags(Resources=[own], Tags=[{"Key": "stockyard:installation", "Value": "i"}])
        group = ec2.create_security_group(GroupName="g", Description="d", VpcId=shared)["GroupId"]
        owners = [owner_of(ACCOUNT, REGION, thing) for thing in (shared, own, group)]
        assert owners == [variants.OWNER, ACCOUNT, ACCOUNT]


def test_a_central_key_is_the_default_of_volumes_and_asked_by_its_own_arn() -> None:
    with mock_aws(), placement_groups():
        variants.begin(ACCOUNT, "central-key")
        ec2 = boto3.client("ec2", region_name=REGION)
        assert ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == variants.CENTRAL_KEY
        asks = run_instances("central-key", {}, encrypted=True)
    assert {ask.resource for ask in asks if ask.action.startswith("kms:")} == {variants.CENTRAL_KEY}


def test_an_account_runs_no_more_functions_at_a_time_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions, lock = Functions(tmp_path, tmp_path, most=2), threading.Lock()
    running = most = 0

    def invoke(*_: Any) -> Invocation:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with lock:
            running -= 1
        return Invocation(b"")

    monkeypatch.setattr(functions, "_invoke", invoke)
    threads = [threading.Thread(target=functions.invoke, args=("f", b"")) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2
