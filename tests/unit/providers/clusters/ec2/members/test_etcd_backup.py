"""Snapshots of etcd in S3: the bucket, the rights of members and of nobody else, and what a deletion leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from local.aws.permissions.policies import Ask, allowed_by
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import ClusterCreate
from stockyard.errors import InvalidInput, PermissionDenied
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.policies import template_versions, tenant_template
from stockyard.providers.clusters.ec2 import planning
from tests.harness import tenant_stack
from tests.harness.worlds.stage import Stage
from tests.unit.domain.models.clusters.test_clusters import MINIMAL
from tests.unit.operations.conftest import MemoryPrices

BACKUP = {"interval_hours": 6, "keep": 3, "bucket": None, "on_deletion": "remove"}
OLD, NEW = "20260101T000000Z", "20260101T060000Z"


def s3(yard: Any) -> Any:
    return yard.tenant().client("s3", region_name="us-east-1")


def bucket(yard: Any) -> str:
    return str(yard.ledger.find("bucket", "etcd").vendor_id)


def put(yard: Any, *ids: str, name: str = "") -> None:
    store = yard.provider.snapshot_store(yard.cluster)
    for snapshot in ids:
        body, marks = b"s" * 10, {"release": "1.35.4"}
        s3(yard).put_object(Bucket=name or store.bucket, Key=store.key(snapshot), Body=body, Metadata=marks)


def role_policy(yard: Any) -> dict[str, Any] | None:
    iam, role = yard.tenant().client("iam"), yard.ledger.find("role", "control-plane").vendor_id
    if "etcd-snapshots" not in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        return None
    document: dict[str, Any] = iam.get_role_policy(RoleName=role, PolicyName="etcd-snapshots")["PolicyDocument"]
    return document


def test_the_bucket_is_closed_encrypted_versioned_and_tagged(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    for phase in ("account", "identity"):
        yard.ensure(phase)
    client, name = s3(yard), bucket(yard)
    assert name == f"{yard.provider._config.name_prefix}-{yard.cluster.client_id}-etcd"
    assert all(client.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"].values())
    rule = client.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"][0]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert client.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    rules = client.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]
    assert rules[0]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}
    assert "Days" not in rules[0].get("Expiration", {}), "no rule by age removes the last good snapshot"
    tags = {tag["Key"]: tag["Value"] for tag in client.get_bucket_tagging(Bucket=name)["TagSet"]}
    assert tags["stockyard:resource"] == yard.cluster.id


def test_members_may_write_snapshots_of_their_cluster_and_nothing_else(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    yard.ensure("identity")
    name = bucket(yard)
    document = role_policy(yard)
    assert document is not None
    (statement,) = document["Statement"]
    assert statement["Action"] == "s3:PutObject"
    assert statement["Resource"] == f"arn:aws:s3:::{name}/stockyard-etcd/{yard.cluster.id}/*"
    iam, role = yard.tenant().client("iam"), yard.ledger.find("role", "node").vendor_id
    nodes = iam.get_role_policy(RoleName=role, PolicyName="node")["PolicyDocument"]
    assert "s3:" not in json.dumps(nodes)


def test_one_snapshot_can_be_read_while_it_is_restored(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    yard.ensure("identity")
    before = role_policy(yard)
    yard.provider.open_snapshot(yard.work("identity"), NEW)
    document = role_policy(yard)
    assert document is not None
    assert [s["Resource"].rpartition("/")[2] for s in document["Statement"]] == ["*", f"{NEW}.tar.gz"]
    yard.provider.close_snapshots(yard.work("identity"))
    assert role_policy(yard) == before


def test_the_setting_is_changed_on_the_second_day(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True)
    yard.ensure("identity")
    assert role_policy(yard) is None
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    yard.ensure("identity")
    assert role_policy(yard) is not None
    put(yard, OLD)
    yard.with_settings(cloud_controllers=True, etcd_backup=None)
    yard.ensure("identity")
    assert role_policy(yard) is None
    assert s3(yard).list_objects_v2(Bucket=bucket(yard))["KeyCount"] == 1, "what was taken stays"
    yard.delete()
    assert s3(yard).list_buckets()["Buckets"] == []


def test_a_bucket_that_was_cut_off_before_its_tags_is_found_again(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    name = f"{yard.provider._config.name_prefix}-{yard.cluster.client_id}-etcd"
    builder = yard.provider._builder(yard.work("identity"))
    builder.ledger.intend("bucket", "etcd", {"name": name})
    s3(yard).create_bucket(Bucket=name)
    yard.later(120)
    yard.cluster = replace(yard.cluster, status="deleting")
    yard.delete()
    assert s3(yard).list_buckets()["Buckets"] == []


def test_snapshots_are_listed_told_and_removed(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    yard.ensure("identity")
    assert yard.provider.snapshots(yard.work("identity")) == []
    put(yard, OLD, NEW)
    s3(yard).put_object(Bucket=bucket(yard), Key=f"stockyard-etcd/{yard.cluster.id}/notes.txt", Body=b"mine")
    listed = yard.provider.snapshots(yard.work("identity"))
    assert [snapshot.id for snapshot in listed] == [NEW, OLD]
    first = yard.provider.snapshot(yard.work("identity"), OLD)
    assert (first.kubernetes_version, first.size) == ("1.35", 10)
    assert yard.provider.snapshot(yard.work("identity"), "20260102T000000Z") is None
    yard.provider.remove_snapshots(yard.work("identity"), [OLD, "20250101T000000Z"])
    assert [snapshot.id for snapshot in yard.provider.snapshots(yard.work("identity"))] == [NEW]


def test_a_deletion_takes_the_snapshots_with_it(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    yard.ensure("identity")
    put(yard, OLD, NEW)
    yard.provider.remove_snapshots(yard.work("identity"), [OLD])
    yard.later(120)
    yard.cluster = replace(yard.cluster, status="deleting")
    yard.delete()
    assert s3(yard).list_buckets()["Buckets"] == []


def test_a_version_that_s3_refuses_to_delete_ends_the_try(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 answers 200 and names the refused objects: who looks at the status alone would ask for ever."""
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    yard.ensure("identity")
    put(yard, NEW)
    call, refused_keys = Calls.call, []

    def refusing(calls: Calls, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation != "delete_objects":
            return call(calls, service, operation, **parameters)
        refused_keys.append(parameters["Delete"]["Objects"][0]["Key"])
        assert len(refused_keys) < 5, "it asks for ever"
        return {"Errors": [{"Key": refused_keys[-1], "Code": "AccessDenied", "Message": "Access Denied"}]}

    monkeypatch.setattr(Calls, "call", refusing)
    with pytest.raises(PermissionDenied, match=NEW):
        yard.provider.remove_snapshots(yard.work("identity"), [NEW])
    yard.later(120)
    yard.cluster = replace(yard.cluster, status="deleting")
    with pytest.raises(PermissionDenied, match=NEW):
        yard.delete()
    assert len(refused_keys) == 2


def test_a_deletion_keeps_what_it_is_asked_to_keep_and_says_where(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup={**BACKUP, "on_deletion": "keep"})
    yard.ensure("identity")
    put(yard, NEW)
    name = bucket(yard)
    yard.later(120)
    yard.cluster = replace(yard.cluster, status="deleting")
    outcome = yard.remove("identity")
    assert name in outcome.message
    assert yard.ledger.find("bucket", "etcd") is None
    assert s3(yard).list_objects_v2(Bucket=name)["KeyCount"] == 1
    tags = {tag["Key"] for tag in s3(yard).get_bucket_tagging(Bucket=name)["TagSet"]}
    assert not [tag for tag in tags if tag.startswith("stockyard:")], "the sweep does not take it for an orphan"


def test_in_a_bucket_of_the_tenants_only_our_folder_is_touched(yard: Any) -> None:
    s3(yard).create_bucket(Bucket="acme-backups")
    s3(yard).put_object(Bucket="acme-backups", Key="other/20260101T000000Z.tar.gz", Body=b"theirs")
    yard.with_settings(cloud_controllers=True, etcd_backup={**BACKUP, "bucket": "acme-backups"})
    yard.ensure("identity")
    assert yard.ledger.find("bucket", "etcd") is None
    put(yard, OLD, NEW, name="acme-backups")
    assert len(yard.provider.snapshots(yard.work("identity"))) == 2
    yard.later(120)
    yard.cluster = replace(yard.cluster, status="deleting")
    yard.delete()
    remaining = s3(yard).list_objects_v2(Bucket="acme-backups")["Contents"]
    assert [item["Key"] for item in remaining] == ["other/20260101T000000Z.tar.gz"]


def test_a_bucket_that_will_not_do_is_named_before_anything_is_made(yard: Any) -> None:
    elsewhere = yard.tenant().client("s3", region_name="eu-west-1")
    bucket_configuration = {"LocationConstraint": "eu-west-1"}
    elsewhere.create_bucket(Bucket="acme-eu", CreateBucketConfiguration=bucket_configuration)
    for name, text in (("acme-eu", "is in eu-west-1"), ("acme-none", "There is no bucket")):
        yard.with_settings(cloud_controllers=True, etcd_backup={**BACKUP, "bucket": name})
        findings = [f for f in yard.provider.inspect(yard.work("account")) if "etcd_backup" in f.pointer]
        assert [(f.pointer, f.warning) for f in findings] == [("/settings/etcd_backup/bucket", False)]
        assert text in findings[0].detail


KEY = "arn:aws:kms:us-east-1:{}:key/01234567-89ab-cdef-0123-456789abcdef"


def encrypted(yard: Any, account: str) -> None:
    """A bucket of the tenant's with a key of that account, which the cluster's settings name."""
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY.format(account)}}
    s3(yard).create_bucket(Bucket="acme-backups")
    s3(yard).put_bucket_encryption(Bucket="acme-backups", ServerSideEncryptionConfiguration={"Rules": [rule]})
    yard.with_settings(cloud_controllers=True, etcd_backup={**BACKUP, "bucket": "acme-backups"})


def bucket_findings(yard: Any) -> list[Any]:
    return [f for f in yard.provider.inspect(yard.work("account")) if f.pointer == "/settings/etcd_backup/bucket"]


def test_members_may_use_the_key_of_a_bucket_for_snapshots_of_their_cluster(yard: Any) -> None:
    encrypted(yard, "222222222222")
    assert bucket_findings(yard) == []
    yard.ensure("identity")
    document, template = role_policy(yard), tenant_template.render(yard.account, "inst-1", Stage())
    assert document is not None
    bound = template["Resources"]["Boundary"]["Properties"]["PolicyDocument"]["Statement"]
    boundary = tenant_stack.handed_to_iam(bound)
    boundary = json.loads(json.dumps(boundary).replace("aws-us-gov", "aws"))
    own = f"arn:aws:s3:::acme-backups/stockyard-etcd/{yard.cluster.id}/a"
    contexts = ((own, True), ("arn:aws:s3:::acme-backups", True), ("arn:aws:s3:::acme-other", False))
    for account in ("222222222222", "333333333333"):
        for action in ("kms:GenerateDataKey", "kms:Decrypt"):
            for context, allowed in contexts:
                via = {"kms:ViaService": "s3.us-east-1.amazonaws.com", "kms:EncryptionContext:aws:s3:arn": context}
                ask = Ask(action, KEY.format(account), via)
                assert bool(allowed_by(document["Statement"], ask)) is allowed, ask
                assert allowed_by(boundary, ask)
            assert not allowed_by(boundary, Ask(action, KEY.format(account), {})), "through S3 and EC2 alone"


def test_a_key_of_another_account_and_a_template_that_may_not_look_are_told(
    yard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypted(yard, "333333333333")
    (finding,) = bucket_findings(yard)
    assert finding.warning
    assert "its policy has to let this account use kms:Decrypt and kms:GenerateDataKey" in finding.detail
    old = template_versions.Deployed(template_versions.SNAPSHOT_KEYS - 1)
    monkeypatch.setattr(template_versions, "deployed", lambda *_: old)
    (finding,) = bucket_findings(yard)
    assert finding.warning
    assert f"needs {template_versions.SNAPSHOT_KEYS}" in finding.detail


def test_a_template_that_is_too_old_is_named(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    old = template_versions.Deployed(template_versions.BACKUPS - 1)
    monkeypatch.setattr(template_versions, "deployed", lambda *_: old)
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    findings = [f for f in yard.provider.inspect(yard.work("account")) if f.pointer == "/settings/etcd_backup"]
    assert "Deploy the account's current template again" in findings[0].detail


def test_the_plan_names_the_bucket_and_its_price(yard: Any) -> None:
    yard.with_settings(cloud_controllers=True, etcd_backup=BACKUP)
    plan = planning.plan(yard.cluster, MemoryPrices(), "vantage")
    assert [kind for kind, _ in plan.creates].count("bucket") == 1
    item = next(item for item in plan.items if "S3" in item.name)
    assert item.hour == pytest.approx(0.023 * 6 / 730)
    yard.with_settings(cloud_controllers=True, etcd_backup={**BACKUP, "bucket": "acme-backups"})
    assert "bucket" not in [kind for kind, _ in planning.plan(yard.cluster, MemoryPrices(), "vantage").creates]


@pytest.mark.parametrize(
    ("settings", "pointer"),
    [
        ({"etcd_backup": {"interval_hours": 5}}, "/settings/etcd_backup/interval_hours"),
        ({"etcd_backup": {"keep": 0}}, "/settings/etcd_backup/keep"),
        ({"etcd_backup": {"bucket": "Not_A_Bucket"}}, "/settings/etcd_backup/bucket"),
        ({"etcd_backup": {"days": 3}}, "/settings/etcd_backup/days"),
        ({"etcd_backup": {}, "cloud_controllers": False}, "/settings/etcd_backup"),
    ],
)
def test_faults_name_the_field(settings: dict[str, Any], pointer: str) -> None:
    document = {**MINIMAL, "settings": {**MINIMAL["settings"], **settings}}
    with pytest.raises(InvalidInput) as refusal:
        read(ClusterCreate, document)
    assert [problem.pointer for problem in refusal.value.errors] == [pointer]
