"""Machines on Cudo of a cluster that stands elsewhere and has an overlay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local.machines.programs import script_files
from tests.unit.providers.conftest import MemoryLedger
from tests.unit.providers.nodes.cudo.test_provider import World


@pytest.fixture
def world() -> World:
    return World().with_network().prepare()


def test_a_cluster_that_stands_elsewhere_has_a_group_for_its_nodes_alone_and_nothing_stays(world: World) -> None:
    """As far as it has an overlay: its nodes have public addresses, no network, and let in what WireGuard answers."""
    world.cluster = replace(world.cluster, cloud_account_id=1, place="us-east-1", settings={"overlay": {"range": "r"}})
    assert world.source.out_of_reach(world.provider, world.cluster) is None
    environment = MemoryLedger(world.cluster, "environment", world.yard.clock.now())
    work = replace(world.environment_work(), ledger=environment)
    for _ in range(2):
        outputs = dict(world.source.prepare(work).facts)
    assert (outputs["network"], [line.kind for line in environment.lines()]) == ("", ["security_group"])
    group = world.yard.project.groups[str(outputs["security_group"])]
    rules = {(rule["protocol"], rule.get("ports"), rule["ruleType"]) for rule in group["rules"]}
    assert rules == {
        ("PROTOCOL_UDP", "51820", "RULE_TYPE_INBOUND"),
        ("PROTOCOL_ALL", None, "RULE_TYPE_OUTBOUND"),
    }
    world.environment = replace(world.environment, outputs=outputs)
    assert world.launch().done
    (nic,) = world.body()["nics"]
    assert nic == {"assignPublicIp": True, "securityGroupIds": [outputs["security_group"]]}
    assert "/usr/local/lib/stockyard/overlay.sh" in script_files(world.body()["startScript"])
    world.until_done(lambda: world.source.terminate(world.work()))
    world.until_done(lambda: world.source.clear(work))
    assert outputs["security_group"] not in world.yard.project.groups
    assert environment.lines() == []
