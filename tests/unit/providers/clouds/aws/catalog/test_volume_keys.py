"""Keys by which disks are encrypted, and the principals that they have to let in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from local.aws import tenant_role
from local.aws.corrections.compute.placement_groups import set_volume_key
from stockyard.domain.models.base import read
from stockyard.errors import InvalidInput, PermissionDenied
from stockyard.machines import manifests
from stockyard.providers.clouds.aws.attributes import AwsAttributes
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import volume_keys
from stockyard.providers.clouds.aws.policies import template_versions, tenant_template
from tests.harness.asks import recorded_asks
from tests.harness.policies import refused
from tests.harness.worlds.stage import Stage
from tests.unit.providers.conftest import ACME

OWN = f"arn:aws:kms:us-east-1:{ACME}:key/01234567-89ab-cdef-0123-456789abcdef"
CENTRAL = OWN.replace(ACME, "333333333333")
SCALING = f"arn:aws:iam::{ACME}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"


def texts(yard: Any, *, is_scaled: bool) -> list[str]:
    calls = Calls(yard.provider._sessions.of(yard.account, "op_1"), "us-east-1")
    findings = list(volume_keys.findings(calls, yard.account, is_scaled=is_scaled))
    assert all(finding.warning and finding.pointer == "/cloud_account_id" for finding in findings)
    return [finding.detail for finding in findings]


def test_the_key_of_aws_needs_no_word(yard: Any) -> None:
    assert texts(yard, is_scaled=True) == texts(yard, is_scaled=False) == []


def test_a_default_key_of_the_accounts_own_has_to_let_in_who_scales(yard: Any) -> None:
    set_volume_key(ACME, "us-east-1", OWN)
    assert texts(yard, is_scaled=False) == []
    (text,) = texts(yard, is_scaled=True)
    for statement in volume_keys.statements(yard.account, is_scaled=True):
        assert json.dumps(statement, separators=(",", ":")) in text
        assert statement["Principal"] == {"AWS": SCALING}
    assert "create-grant" not in text


def test_a_central_key_lets_in_the_account_and_the_account_its_own(yard: Any) -> None:
    yard.account = replace(yard.account, attributes={**yard.account.attributes, "volume_key_arn": CENTRAL})
    (text,) = texts(yard, is_scaled=False)
    assert f'"Principal":{{"AWS":"arn:aws:iam::{ACME}:root"}}' in text
    assert "create-grant" not in text
    (text,) = texts(yard, is_scaled=True)
    assert f"aws kms create-grant --key-id {CENTRAL} --grantee-principal {SCALING} --operations" in text


def test_a_key_of_another_region_is_told_and_not_used(yard: Any) -> None:
    elsewhere = CENTRAL.replace("us-east-1", "eu-west-1")
    yard.account = replace(yard.account, attributes={**yard.account.attributes, "volume_key_arn": elsewhere})
    assert volume_keys.of_account(yard.account, "us-east-1") == ""
    assert volume_keys.of_account(yard.account, "eu-west-1") == elsewhere
    assert "is a key of eu-west-1" in texts(yard, is_scaled=False)[0]


def test_an_earlier_template_may_not_look_and_nothing_is_said(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_volume_key(ACME, "us-east-1", OWN)
    real = Calls.call

    def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "get_ebs_default_kms_key_id":
            raise PermissionDenied("no")
        return real(calls, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    assert texts(yard, is_scaled=True) == []


def test_all_disks_of_a_cluster_are_encrypted_by_the_accounts_key(yard: Any) -> None:
    yard.account = replace(yard.account, attributes={**yard.account.attributes, "volume_key_arn": CENTRAL})
    bastion = {"enabled": True, "instance_type": "t3.micro", "image": None, "protocol": "ssh"}
    with recorded_asks(ACME) as asks:
        yard.with_settings(cloud_controllers=True, bastion=bastion).create()
    of_keys = {text: ask for text, ask in asks.items() if ask.action.startswith("kms:")}
    assert CENTRAL in {ask.resource for ask in of_keys.values()}
    template = json.loads(json.dumps(tenant_template.render(yard.account, "inst-1", Stage())))
    for version, is_enough in ((template_versions.CURRENT, True), (template_versions.SHARED_NETWORKS - 1, False)):
        deployed = tenant_role.resources(tenant_role.of_version(template, version))
        policies = [deployed[name]["PolicyDocument"] for name in deployed["Role"]["ManagedPolicyArns"]]
        statements = [statement for policy in policies for statement in policy["Statement"]]
        assert (refused({"tenant": of_keys}, {"tenant": statements}) == []) is is_enough, version
    volumes = yard.tenant().client("ec2").describe_volumes()["Volumes"]
    assert len(volumes) == 3, "of the control plane, of etcd, of the bastion"
    assert {volume["KmsKeyId"] for volume in volumes} == {CENTRAL}
    parameters = manifests.storage_class(CENTRAL)["parameters"]
    assert parameters == {"type": "gp3", "encrypted": "true", "kmsKeyId": CENTRAL}
    assert "kmsKeyId" not in manifests.storage_class()["parameters"]


def test_an_account_names_a_key_by_its_arn(yard: Any) -> None:
    role = {"role_arn": "arn:aws:iam::222222222222:role/stockyard"}
    assert read(AwsAttributes, {**role, "volume_key_arn": CENTRAL}).volume_key_arn == CENTRAL
    for text in ("alias/disks", CENTRAL.replace(":key/", ":alias/"), "01234567-89ab-cdef-0123-456789abcdef"):
        with pytest.raises(InvalidInput) as caught:
            read(AwsAttributes, {**role, "volume_key_arn": text})
        assert caught.value.errors[0].pointer == "/volume_key_arn"
