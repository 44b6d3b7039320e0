"""Each action of the tenant's template came with a version, and an account is told what its version lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.aws.corrections.refusals import planned_refusals
from stockyard.providers.clouds.aws.cloud import ANOTHER_PRINCIPAL, AwsCloud
from stockyard.providers.clouds.aws.policies import template_parts, template_versions, tenant_template
from stockyard.providers.clouds.aws.policies.template_parts import BLOCKS, EKS, FILES, KUBEADM
from stockyard.providers.clouds.aws.policies.template_versions import (
    ADDITIONS,
    CURRENT,
    FIRST,
    NARROW,
    TAG,
    Deployed,
    shortage,
)
from tests.harness import tenant_stack
from tests.harness.worlds import inventory
from tests.harness.worlds.stage import Stage
from tests.unit.providers.conftest import ACME

ACTIONS_OF_THE_FIRST = 88
"""How many actions the template had before it told its version."""


def actions(template: dict[str, Any]) -> set[str]:
    # The boundary of clusters on EKS is no grant: what came with it needs no word of its own.
    statements = tenant_stack.every_statement(template, without=["EksBoundary"])
    return {action for statement in statements for action in statement["Action"]}


def tag(yard: Any, *pairs: tuple[str, str]) -> None:
    iam = yard.tenant().client("iam")
    iam.untag_role(RoleName="stockyard", TagKeys=[TAG, template_parts.TAG])
    iam.tag_role(RoleName="stockyard", Tags=[{"Key": key, "Value": value} for key, value in pairs])


class Strict(boto3.Session):
    """Session whose STS gives keys of the role only with the external id; moto gives them to everybody."""

    def client(self, *args: Any, **kwargs: Any) -> Any:
        sts: Any = super().client(*args, **kwargs)
        assume = sts.assume_role

        def assume_role(**parameters: Any) -> Any:
            if "ExternalId" not in parameters:
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")
            return assume(**parameters)

        sts.assume_role = assume_role
        return sts


def warnings(yard: Any) -> tuple[str, ...]:
    verification = AwsCloud(Stage(), Strict).verify(yard.account, "acme")
    assert verification.works, verification.message
    return verification.warnings


def test_a_role_that_is_not_the_one_before_is_told_once(yard: Any) -> None:
    cloud = AwsCloud(Stage(), Strict)
    first = cloud.verify(yard.account, "acme")
    assert first.principal_id.startswith("ARO")
    account = replace(yard.account, principal_id=first.principal_id)
    assert cloud.verify(account, "acme").warnings == first.warnings == ()
    yard.tenant().client("iam").delete_role(RoleName="stockyard")
    inventory.tenant_role(ACME, "stockyard")
    later = AwsCloud(Stage(), Strict).verify(account, "acme")
    assert (later.works, later.warnings) == (True, (ANOTHER_PRINCIPAL,))
    assert later.principal_id not in ("", first.principal_id)


def test_every_new_action_is_in_the_table_of_versions(yard: Any) -> None:
    granted = actions(tenant_template.render(yard.account, "inst-1", Stage()))
    added = {action for addition in ADDITIONS if not addition.statement for action in addition.actions}
    assert added <= granted
    # Whoever adds an action to the template adds it to ADDITIONS: accounts with an older one are told by that alone.
    assert len(granted - added) == ACTIONS_OF_THE_FIRST


def test_role_is_tagged_with_the_version(yard: Any) -> None:
    tags = tenant_stack.role_tags(tenant_template.render(yard.account, "inst-1", Stage()))
    assert tags["stockyard:template"] == str(CURRENT)


def test_current_template_lacks_nothing(yard: Any) -> None:
    assert warnings(yard) == ()
    assert list(yard.provider.inspect(yard.work("account"))) == []
    assert shortage(Deployed(CURRENT)) is None
    assert shortage(Deployed(CURRENT + 1)) is None


@pytest.mark.parametrize("pairs", [[], [(TAG, "one")], [(TAG, "1")]])
def test_older_template_is_told_what_it_lacks(yard: Any, pairs: list[tuple[str, str]]) -> None:
    tag(yard, *pairs)
    (warning,) = warnings(yard)
    assert f"is version 1, the current one is {CURRENT}" in warning
    assert "ec2:GetConsoleOutput (to show the console of a machine that did not come up)" in warning
    (finding,) = yard.provider.inspect(yard.work("account"))
    assert (finding.pointer, finding.detail) == ("/cloud_account_id", warning)
    assert finding.warning is not any(addition.needed for addition in ADDITIONS)


def test_the_version_before_is_told_what_its_role_can_do_to_others_and_refuses_nothing(yard: Any) -> None:
    tag(yard, (TAG, str(NARROW - 1)))
    (warning,) = warnings(yard)
    assert "By it Stockyard's role can mark and change machines" in warning
    assert "add the parameter EarlierEks=yes" in warning
    older = shortage(Deployed(NARROW - 1), [EKS])
    assert older is not None
    assert not older.refuses
    of_kubeadm = shortage(parts(KUBEADM, version=NARROW - 1))
    assert of_kubeadm is not None
    assert "mark and change" not in of_kubeadm.text, "that is not for clusters of kubeadm"


def test_template_before_versions_may_not_be_read_and_is_the_first(yard: Any) -> None:
    with planned_refusals({}, {"iam:ListRoleTags": 1}, lambda _: True):
        (warning,) = warnings(yard)
    assert "is version 1" in warning


def test_only_what_is_needed_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shortage(Deployed(FIRST), [KUBEADM]) is not None
    needed = template_versions.Addition(CURRENT + 1, "keep the data of a cluster", ("ec2:AttachVolume",), needed=True)
    monkeypatch.setattr(template_versions, "ADDITIONS", (*ADDITIONS, needed))
    refusal = shortage(Deployed(CURRENT))
    assert refusal is not None
    assert refusal.refuses
    assert "ec2:AttachVolume (to keep the data of a cluster)" in refusal.text
    assert "GetConsoleOutput" not in refusal.text


def parts(*features: str, version: int = CURRENT) -> Deployed:
    return Deployed(version, frozenset(features))


@pytest.mark.parametrize(
    ("template", "features", "settings"),
    [
        (parts(KUBEADM), [KUBEADM], ""),
        (parts(EKS), [KUBEADM], "parameter Kubeadm=yes."),
        (parts(KUBEADM), [EKS, FILES, BLOCKS], "parameters Eks=yes Efs=yes CapacityBlocks=yes."),
        (parts(EKS), [EKS, FILES], "parameter Efs=yes."),
        (parts(EKS, FILES), [BLOCKS, EKS], "parameter CapacityBlocks=yes."),
        (parts(EKS), [EKS], ""),
        (Deployed(CURRENT), [EKS, FILES, BLOCKS], ""),
    ],
)
def test_a_part_that_a_cluster_needs_and_that_was_left_out_refuses(
    template: Deployed, features: list[str], settings: str
) -> None:
    refusal = shortage(template, features)
    assert (refusal is not None) is bool(settings)
    if refusal is not None:
        assert refusal.refuses
        assert refusal.text.endswith(f"Deploy the account's current template again with the {settings}")


@pytest.mark.parametrize(
    ("value", "sentence_end", "warned"),
    [
        ("common kubeadm eks efs capacity-blocks", "has the parts kubeadm, eks, efs, capacity-blocks.", False),
        ("common eks", "has the parts eks.", False),
        ("kubeadm of-a-later-release", "has the parts kubeadm.", False),
        ("common", "", True),
        ("", "", True),
    ],
)
def test_a_verification_tells_the_parts_and_warns_where_no_cluster_can_be_made(
    yard: Any, value: str, sentence_end: str, warned: bool
) -> None:
    tag(yard, (TAG, str(CURRENT)), (template_parts.TAG, value))
    verification = AwsCloud(Stage(), Strict).verify(yard.account, "acme")
    assert verification.works
    assert verification.message == (
        "The role can be assumed, and only with the external id."
        + (f" Its template {sentence_end}" if sentence_end else "")
        + " The template for runs is not deployed in us-east-1: only node providers with programs that run there need"
        " it."
    )
    assert [text[-40:] for text in verification.warnings] == [
        "with the parameter Kubeadm=yes or Eks=yes."[-40:]
    ] * warned


def test_what_came_for_a_part_that_was_left_out_is_not_missed(yard: Any) -> None:
    older = shortage(parts(KUBEADM, version=3), [KUBEADM])
    assert older is not None
    assert "eks:" not in older.text, "all that version 4 added is of the other parts"
    tag(yard, (TAG, "2"), (template_parts.TAG, "common kubeadm"))
    (warning,) = warnings(yard)
    assert "iam:UntagRole" in warning
    assert "eks:" not in warning


def test_a_cluster_that_kubeadm_sets_up_is_refused_without_its_part(yard: Any) -> None:
    tag(yard, (TAG, str(CURRENT)), (template_parts.TAG, "common eks efs"))
    (finding,) = yard.provider.inspect(yard.work("account"))
    assert (finding.pointer, finding.warning) == ("/cloud_account_id", False)
    assert "Kubeadm=yes" in finding.detail
