"""A claim's machine in the account: it is launched once, switched, terminated, and has readable names and tags."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from typing import Any

import pytest

from local.aws.corrections.compute.compute import hidden_at_first
from local.aws.corrections.compute.key_pairs import known_key_pairs
from local.aws.corrections.eks.node_images import node_images
from stockyard.errors import (
    NodeCouldNotBeProvisioned,
    NotYetVisible,
    PermissionDenied,
    VendorError,
    VendorNotFound,
    VendorRefused,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.machines import node
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.nodes.ec2 import templates
from stockyard.providers.nodes.ec2.node_class import of_facts


def tags_of(item: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item["Tags"]}


# --- launching -------------------------------------------------------------------------------------------------------


def test_launched_resources_have_names_and_tags(hand: Any) -> None:
    hand.prepare()
    outcome = hand.launch()
    (instance,), (template,) = hand.instances(), hand.templates()
    assert dict(outcome.facts) == {
        "machine_id": instance["InstanceId"],
        "type": "aws.m6i.large",
        "capacity_type": "on-demand",
        "zone": instance["Placement"]["AvailabilityZone"],
    }
    client_id = hand.yard.cluster.client_id
    assert template["LaunchTemplateName"] == f"vantage-{client_id}-aws"
    common = {
        "stockyard:installation": "inst-1",
        "stockyard:tenant": "acme",
        "stockyard:generation": "1",
        "vantage-cluster": client_id,
    }
    machine_tags = {**common, "stockyard:resource": hand.claim.id, "stockyard:key": "instance/machine"}
    assert machine_tags.items() <= tags_of(instance).items()
    assert {**common, "stockyard:resource": hand.environment.id}.items() <= tags_of(template).items()
    (volume,) = hand.calls.describe_volumes()["Volumes"]
    assert machine_tags.items() <= tags_of(volume).items()
    assert not [key for key in tags_of(instance) if "/" in key], "the metadata service could not show its tags"


def test_machine_is_in_cluster_network_and_user_data_has_no_secret(hand: Any) -> None:
    hand.prepare()
    hand.launch()
    (instance,) = hand.instances()
    ledger = hand.yard.ledger
    private = {ledger.find("subnet", f"private-{letter}").vendor_id for letter in "ab"}
    assert instance["SubnetId"] in private
    assert [group["GroupId"] for group in instance["SecurityGroups"]] == [
        ledger.find("security_group", "node").vendor_id
    ]
    assert instance["IamInstanceProfile"]["Arn"].endswith(f"/vantage-{hand.yard.cluster.client_id}-instance-profile")
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert instance["MetadataOptions"]["InstanceMetadataTags"] == "enabled"
    version = hand.calls.describe_launch_template_versions(
        LaunchTemplateName=hand.templates()[0]["LaunchTemplateName"], Versions=["$Default"]
    )["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    (disk,) = version["BlockDeviceMappings"]
    assert disk["Ebs"] == {"VolumeSize": 50, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
    attribute = hand.calls.describe_instance_attribute(InstanceId=instance["InstanceId"], Attribute="userData")
    user_data = base64.b64decode(attribute["UserData"]["Value"])
    assert (
        user_data
        == node.first_boot(
            api_url="https://api.example.test",
            cluster_id=hand.yard.cluster.id,
            kubernetes_version=hand.yard.cluster.kubernetes_version,
        ).cloud_config()
    )
    assert hand.claim.id.encode() not in gzip.decompress(user_data)


def test_repeated_launch_finds_first_machine(hand: Any, sent: list[dict[str, Any]]) -> None:
    hand.prepare()
    first = hand.launch()
    hand.later(3600)
    assert hand.launch().facts == first.facts
    assert (len(sent), len(hand.instances()), len(hand.templates())) == (1, 1, 1)


def test_unrecorded_machine_is_found_by_tags(hand: Any, sent: list[dict[str, Any]]) -> None:
    hand.prepare()
    hand.ledger.fail_made = "instance/machine"
    with pytest.raises(RuntimeError):
        hand.launch()
    outcome = hand.launch()
    (instance,) = hand.instances()
    assert outcome.facts["machine_id"] == instance["InstanceId"]
    assert outcome.facts["type"] == "aws.m6i.large"
    assert outcome.facts["zone"] == instance["Placement"]["AvailabilityZone"]
    assert len(sent) == 1


def test_lost_answer_is_requested_again_unchanged(hand: Any, build: Any, answers: Any) -> None:
    hand.prepare()
    answers.lost = True
    with hidden_at_first(lambda: 1000.0, lambda: 0.0):
        with pytest.raises(VendorTimeout):
            hand.launch()
        with pytest.raises(NotYetVisible):
            hand.launch()
        hand.later(61)
        # The document changes meanwhile.
        hand.provider = replace(build.provider(subnets=["subnet-00000000"], capacityTypes=["spot"]), generation=2)
        hand.launch()
    assert len(answers.sent) == 2
    assert answers.sent[0] == answers.sent[1]
    assert len(hand.instances()) == 1


def test_missing_profile_is_retried_with_other_token(hand: Any, answers: Any) -> None:
    hand.prepare()
    answers.left.append(
        {
            "Instances": [],
            "Errors": [
                {"ErrorCode": "InvalidParameterValue", "ErrorMessage": "Invalid IAM Instance Profile name"},
            ],
        }
    )
    with pytest.raises(NotYetVisible):
        hand.launch()
    hand.later(15)
    assert hand.launch().done
    assert answers.sent[0]["ClientToken"] != answers.sent[1]["ClientToken"]


def test_new_template_is_retried_until_visible(hand: Any, answers: Any) -> None:
    hand.prepare()
    answers.left = [PermissionDenied("no", code="UnauthorizedOperation")] * 2
    with pytest.raises(NotYetVisible):
        hand.launch()
    with pytest.raises(PermissionDenied):
        hand.launch()
    answers.left = [VendorNotFound("gone", code="InvalidLaunchTemplateName.NotFoundException")]
    with pytest.raises(NotYetVisible):
        # another worker makes it anew
        hand.launch()


def test_mismatch_of_repeated_token_keeps_intent(hand: Any, answers: Any) -> None:
    hand.prepare()
    answers.left.append(NotYetVisible("again", code="IdempotentParameterMismatch"))
    with pytest.raises(NotYetVisible):
        hand.launch()
    assert [line.state for line in hand.ledger.lines()] == ["intended"], "its machine may be there"


def test_launch_respects_required_zone(hand: Any, sent: list[dict[str, Any]]) -> None:
    requirements = ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1b"]},)
    hand.claim = replace(hand.claim, requirements=requirements)
    hand.prepare()
    assert hand.launch().facts["zone"] == "us-east-1b"
    assert len(sent[0]["LaunchTemplateConfigs"][0]["Overrides"]) == 1
    elsewhere = ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1f"]},)
    hand.terminate()
    hand.claim = replace(hand.claim, requirements=elsewhere)
    hand.again()
    with pytest.raises(VendorRefused) as caught:
        hand.launch()
    assert caught.value.hint


def test_launch_requires_placement_cluster_account_and_environment(hand: Any) -> None:
    hand.prepare()
    for missing in ("cluster", "account", "environment"):
        with pytest.raises(NodeCouldNotBeProvisioned):
            hand.source.launch(hand.node_work(**{missing: None}))
    hand.claim = replace(hand.claim, placement=None)
    with pytest.raises(NodeCouldNotBeProvisioned):
        hand.launch()
    assert hand.instances() == []


def test_machine_terminated_during_launch_fails_with_reason(hand: Any) -> None:
    hand.prepare()
    machine = hand.launch().facts["machine_id"]
    hand.calls.terminate_instances(InstanceIds=[machine])
    with pytest.raises((NodeCouldNotBeProvisioned, VendorError)) as caught:
        hand.source.launch(hand.node_work())
    assert machine in str(caught.value)


# --- looking, switching, ending --------------------------------------------------------------------------------------


def test_look_returns_state_of_instance(hand: Any) -> None:
    hand.prepare()
    assert hand.source.look(hand.node_work()).state == "absent"
    facts = hand.launch().facts
    machine = hand.source.look(hand.node_work())
    assert (machine.state, machine.machine_id, machine.zone, machine.node_name) == (
        "running",
        facts["machine_id"],
        facts["zone"],
        "",
    )
    hand.calls.stop_instances(InstanceIds=[machine.machine_id])
    assert hand.source.look(hand.node_work()).state == "stopped"
    hand.calls.terminate_instances(InstanceIds=[machine.machine_id])
    assert hand.source.look(hand.node_work()).state == "gone"


def test_invisible_machine_is_starting_then_gone(hand: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hand.prepare()
    hand.launch()
    line = hand.ledger.find("instance", "machine")
    hand.ledger.all[line.id] = replace(line, vendor_id="i-0123456789abcdef0")
    assert hand.source.look(hand.node_work()).state == "starting"
    hand.later(61)
    assert hand.source.look(hand.node_work()).state == "gone"


def test_power_is_switched_off_and_on(hand: Any) -> None:
    hand.prepare()
    with pytest.raises(NodeCouldNotBeProvisioned):
        hand.source.power(hand.node_work(), "Off")
    hand.launch()
    for state, ec2_state in (("Off", "stopped"), ("On", "running"), ("On", "running")):
        outcome = hand.until_done(lambda power=state: hand.source.power(hand.node_work(), power))
        assert outcome.facts == {"power": state}
        assert hand.source.look(hand.node_work()).state == ec2_state


def test_operation_reboots_once(hand: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hand.prepare()
    hand.launch()
    operations: list[str] = []
    real = Calls.call

    def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        operations.append(operation)
        return real(calls, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    for session in ("op_3", "op_3", "op_4"):
        assert hand.source.power(hand.node_work(session=session), "Reboot").facts == {"power": "On"}
    assert operations.count("reboot_instances") == 2
    hand.later(120)
    hand.terminate()
    assert hand.ledger.lines() == []


@pytest.mark.parametrize("seconds", [0, 3600])
def test_termination_leaves_no_machine_volume_or_ledger_line(hand: Any, seconds: int) -> None:
    hand.prepare()
    hand.launch()
    hand.later(seconds)
    hand.terminate()
    assert hand.instances() == []
    assert hand.calls.describe_volumes()["Volumes"] == []
    assert hand.ledger.lines() == []
    assert hand.terminate().done


def test_termination_finds_unrecorded_machine(hand: Any) -> None:
    hand.prepare()
    hand.ledger.fail_made = "instance/machine"
    with pytest.raises(RuntimeError):
        hand.launch()
    assert len(hand.instances()) == 1
    hand.terminate()
    assert hand.instances() == []
    assert hand.ledger.lines() == []


def test_termination_waits_until_young_template_is_visible(hand: Any) -> None:
    hand.prepare()
    hidden = [True]
    with hidden_at_first(lambda: 1000.0, lambda: 0.0 if hidden[0] else 2000.0):
        hand.launch()
        outcome = hand.source.terminate(hand.node_work())
        assert not outcome.done
        assert "launch template" in outcome.message
        assert hand.ledger.lines()
        hidden[0] = False
        hand.terminate()
        hand.clear()
    assert hand.templates() == []
    assert hand.instances() == []


def test_sweep_of_account_lists_and_discards_node_resources(hand: Any) -> None:
    hand.prepare()
    hand.launch()
    cloud, account = hand.yard.cloud, hand.yard.account
    things = {
        thing.kind: thing
        for thing in cloud.tagged(account, "inst-1", "acme", ["us-east-1"])
        if thing.resource_id in (hand.claim.id, hand.environment.id)
    }
    assert {kind: thing.resource_id for kind, thing in things.items()} == {
        "instance": hand.claim.id,
        "volume": hand.claim.id,
        "launch_template": hand.environment.id,
    }
    assert all(thing.created_at for thing in things.values())
    for kind in ("instance", "launch_template", "volume"):
        assert cloud.discard(account, things[kind], "acme"), kind
    assert hand.instances() == []
    assert hand.templates() == []
    assert list(hand.source.tagged(hand.provider, "inst-1", "acme")) == []
    assert not hand.source.discard(hand.provider, things["instance"], "acme")


def test_a_key_pair_that_is_gone_keeps_no_machine_from_being_made(hand: Any) -> None:
    hand.prepare()
    with known_key_pairs():
        hand.calls.delete_key_pair(KeyName=hand.yard.cluster.settings["key_pair"])
        hand.launch()
    (instance,) = hand.instances()
    assert "KeyName" not in instance


def test_a_machine_has_the_clusters_key_pair_and_the_disk_that_its_pool_asks_for(hand: Any) -> None:
    hand.claim = replace(hand.claim, properties={"root_disk_gib": "120"})
    hand.prepare()
    hand.launch()
    (instance,) = hand.instances()
    assert instance["KeyName"] == hand.yard.cluster.settings["key_pair"]
    volumes = hand.calls.describe_volumes(
        Filters=[{"Name": "attachment.instance-id", "Values": [instance["InstanceId"]]}]
    )
    assert [volume["Size"] for volume in volumes["Volumes"]] == [120]
    hand.terminate()
    hand.again()
    hand.claim = replace(hand.claim, properties={})
    hand.launch()
    (template,) = hand.templates()
    (version,) = hand.calls.describe_launch_template_versions(LaunchTemplateId=template["LaunchTemplateId"])[
        "LaunchTemplateVersions"
    ]
    assert version["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 50


def test_a_machine_with_a_gpu_starts_from_aws_image_with_the_driver_on_a_larger_disk(hand: Any, build: Any) -> None:
    hand.claim = replace(hand.claim, properties={"root_disk_gib": "60"})
    hand.bind(build.option("g5.48xlarge"))
    with node_images():
        images = of_facts(hand.prepare().facts).images
        assert images.keys() >= {"amd64", "amd64-gpu", "arm64-gpu"}
        hand.launch()
    (instance,) = hand.instances()
    assert (instance["InstanceType"], instance["ImageId"]) == ("g5.48xlarge", images["amd64-gpu"])
    (template,) = hand.templates()
    assert template["LaunchTemplateName"].endswith("-gpu")
    (version,) = hand.calls.describe_launch_template_versions(LaunchTemplateId=template["LaunchTemplateId"])[
        "LaunchTemplateVersions"
    ]
    assert version["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 100
    hand.terminate()
    hand.clear()
    assert hand.templates() == []


def test_what_the_look_for_the_template_raised_is_raised_behind_the_intent(
    hand: Any, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hand.prepare()
    looks, real = [], templates.find

    def failing(calls: Calls, name: str) -> Any:
        looks.append(name)
        if len(looks) == 1:
            raise VendorUnavailable("EC2 is away", code="Unavailable")
        return real(calls, name)

    monkeypatch.setattr(templates, "find", failing)
    with pytest.raises(VendorUnavailable, match="EC2 is away"):
        hand.launch()
    assert (hand.ledger.find("instance", "machine").state, len(looks), sent) == ("intended", 1, [])
    hand.later(3600)
    hand.launch()
    assert (len(hand.instances()), len(sent)) == (1, 1)
