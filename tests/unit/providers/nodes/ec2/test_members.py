"""Machines of a control plane's members: where they stand, and that snapshots of their disks are taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import dlm as dlm_kinds


def test_a_member_stands_where_the_balancer_reaches_it(hand: Any) -> None:
    hand.prepare()
    hand.claim = replace(hand.claim, control_plane=True)
    hand.launch()
    (instance,) = hand.instances()
    group = hand.yard.ledger.find("security_group", "control-plane").vendor_id
    assert group in [item["GroupId"] for item in instance["SecurityGroups"]]


def test_the_cloud_controller_knows_its_cluster_on_every_member_and_on_no_worker(hand: Any) -> None:
    hand.prepare()
    hand.launch()
    (worker,) = hand.instances()
    hand.terminate()
    hand.again()
    hand.claim = replace(hand.claim, control_plane=True)
    hand.ledger.cluster = hand.claim
    hand.launch()
    (member,) = hand.instances()
    # The controller refuses a machine with two different names, and ends on one with none.
    assert _clusters(member) == {hand.yard.cluster.client_id}
    assert _clusters(worker) == set()


def _clusters(instance: Any) -> set[str]:
    carried = tags.mapping(instance["Tags"])
    prefix = tags.kubernetes("")
    named = {key.removeprefix(prefix) for key in carried if key.startswith(prefix)}
    return named | ({carried[tags.CLUSTER_OF_MEMBER]} if tags.CLUSTER_OF_MEMBER in carried else set())


def test_the_policy_of_snapshots_finds_the_disk_of_a_member_and_of_no_worker(hand: Any) -> None:
    hand.prepare()
    hand.launch()
    (disk,) = hand.calls.describe_volumes()["Volumes"]
    assert dlm_kinds.TARGET not in tags.mapping(disk["Tags"])
    hand.terminate()
    hand.again()
    hand.claim = replace(hand.claim, control_plane=True)
    hand.ledger.cluster = hand.claim
    hand.launch()
    of_policy = tags.filters(dlm_kinds.target(hand.yard.cluster.id))
    (instance,) = hand.instances()
    (disk,) = hand.calls.describe_volumes(Filters=of_policy)["Volumes"]
    assert [item["InstanceId"] for item in disk["Attachments"]] == [instance["InstanceId"]]
