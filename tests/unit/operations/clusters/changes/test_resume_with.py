"""A creation that has failed goes on with other settings, but for those by which something stands already."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.resume import ClusterResume
from stockyard.domain.records import Cluster, Event, Fact, Operation, Pool
from stockyard.errors import FieldProblem, IllegalTransition, InvalidInput, VendorRefused
from stockyard.operations.clusters.changes.resume import plan_resume
from stockyard.operations.clusters.changes.resume_with import plan_resume_with, resume_with
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.listing import every
from stockyard.ports import Finding
from tests.unit.operations.clusters.balanced_world import USER, WEB
from tests.unit.operations.conftest import World, make_world

BATCH = {**WEB, "name": "batch", "instance_types": ["m5.xlarge"]}


def failed_at(phase: str, *groups: dict[str, Any], **settings: Any) -> tuple[World, Cluster]:
    """A cluster whose creation has failed in the phase."""
    world = make_world()
    world.provider.faults[phase] = [VendorRefused("no such thing")]
    new_cluster = world.new_cluster(settings={"autoscaler_node_groups": list(groups or (WEB,)), **settings})
    cluster = create_cluster(world.services, new_cluster, USER)[0]
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    return world, world.cluster(cluster)


def resume(world: World, cluster: Cluster, **body: Any) -> Cluster:
    return resume_with(world.services, cluster.id, read(ClusterResume, body), USER)


def refused(world: World, cluster: Cluster, **body: Any) -> list[FieldProblem]:
    with pytest.raises(InvalidInput) as refusal:
        resume(world, cluster, **body)
    return list(refusal.value.errors)


def pools(world: World) -> dict[str, Pool]:
    return {pool.name: pool for pool in every(world.services.store, Pool)}


def test_a_plan_says_which_phases_run_and_what_becomes_another_and_changes_nothing() -> None:
    world, cluster = failed_at("control_plane", WEB)
    plan = plan_resume(world.services, cluster)
    operation = world.services.store.get(Operation, cluster.operation_id or "")
    assert operation is not None
    assert plan["verdict"] == f"Operation {operation.id} would go on at phase control_plane, with attempt 2."
    names = [phase.name for phase in operation.phases]
    assert plan["steps"] == [f"Phase {name}" for name in names[names.index("control_plane") :]]

    document = {"settings": {"autoscaler_node_groups": [BATCH], "control_plane_instance_type": "m5.large"}}
    body = read(ClusterResume, document)
    fields, parts = plan_resume_with(world.services, cluster, body, USER)
    assert fields["settings"]["control_plane_instance_type"] == "m5.large"
    assert parts["steps"] == [f"Phase {name}" for name in names]
    items = {item["name"] for item in parts["price"]["items"]}
    assert {"control plane instance m5.large", "network load balancer"} <= items, "the cluster as it would be"
    assert (parts["creates"], parts["deletes"]) == (
        [{"kind": "pool", "name": BATCH["name"]}],
        [{"kind": "pool", "name": WEB["name"]}],
    )
    assert (world.cluster(cluster), list(pools(world))) == (cluster, [WEB["name"]])
    resume(world, cluster, **document)
    with pytest.raises(IllegalTransition):
        plan_resume_with(world.services, world.cluster(cluster), body, USER)
    with pytest.raises(IllegalTransition):
        plan_resume(world.services, world.cluster(cluster))


def test_before_anything_is_made_everything_may_be_another() -> None:
    world, cluster = failed_at("account")
    settings = {"region_name": "eu-west-1", "key_pair": "other", "vpc_cidr": "10.1.0.0/16", "control_plane_size": 3}
    resumed = resume(world, cluster, settings=settings, kubernetes_version="1.35")
    assert resumed.status == "preparing"
    assert {name: resumed.settings[name] for name in settings} == settings
    assert resumed.kubernetes_version == "1.35"
    assert world.drive(cluster, "provision_cluster") == "ready"


def test_the_type_that_was_not_to_be_had_is_another_one_and_the_network_stays() -> None:
    world, cluster = failed_at("control_plane")
    things = dict(world.provider.things)
    resumed = resume(world, cluster, settings={"control_plane_instance_type": "m5.large", "zones": ["us-east-1b"]})
    assert resumed.settings["control_plane_instance_types"] == ["m5.large"]
    # The phases that are done bring what stands to the settings: all of them are gone through again.
    operation = world.services.store.get(Operation, resumed.operation_id)
    assert {record.state for record in operation.phases} == {"pending"}
    assert world.drive(cluster, "provision_cluster") == "ready"
    assert things.items() <= world.provider.things.items()
    assert world.cluster(cluster).settings["zones"] == ["us-east-1b"]


def test_what_something_was_made_with_is_refused_by_the_name_of_it() -> None:
    world, cluster = failed_at("endpoint")
    faults = refused(world, cluster, settings={"vpc_cidr": "10.1.0.0/16", "region_name": "eu-west-1"})
    assert {fault.pointer for fault in faults} == {"/settings/region_name", "/settings/vpc_cidr"}
    texts = {fault.pointer: fault.detail for fault in faults}
    text = f"cannot be changed any more: network network-{cluster.id} has been made with it."
    assert texts["/settings/vpc_cidr"].startswith(text)
    assert world.cluster(cluster) == cluster


def test_a_machine_that_stands_keeps_what_it_was_made_with() -> None:
    world, cluster = failed_at("account")
    world.deployer.faults.before("deploy", VendorRefused("not now"))
    resume(world, cluster, settings={"key_pair": "other"})
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    cluster = world.cluster(cluster)
    sent = {"key_pair": "third", "image": "ami-0123456789abcdef0", "control_plane_instance_type": "m5.large"}
    faults = refused(world, cluster, settings=sent, kubernetes_version="1.33")
    assert {fault.pointer for fault in faults} == {
        "/kubernetes_version",
        "/settings/control_plane_instance_type",
        "/settings/control_plane_instance_types",
        "/settings/image",
        "/settings/key_pair",
    }
    # What it has reported stays known, since it does not report again.
    resume(world, cluster, settings={"api_cidrs": ["198.51.100.0/24"]})
    assert world.services.store.get(Fact, f"{cluster.id}/reported_ready") is not None
    assert world.drive(cluster, "provision_cluster") == "ready"


def test_pools_follow_their_groups() -> None:
    world, cluster = failed_at("network", WEB, BATCH)
    groups = [{**WEB, "max_size": 9}, {**BATCH, "name": "more"}]
    resume(world, cluster, settings={"autoscaler_node_groups": groups})
    assert pools(world).keys() == {"web", "more"}
    assert pools(world)["web"].limits["nodes"] == "9"
    events = [event for event in every(world.services.store, Event) if event.subject.endswith("/batch")]
    assert [event.reason for event in sorted(events, key=lambda event: event.sequence)] == ["Created", "Deleted"]
    assert world.drive(cluster, "provision_cluster") == "ready"


def test_the_checks_of_a_creation_hold() -> None:
    world, cluster = failed_at("control_plane")
    faults = refused(world, cluster, settings={"zones": ["eu-west-1a"]})
    assert [fault.pointer for fault in faults] == ["/settings/zones/0"]
    world.provider.findings = [Finding("/settings/key_pair", "There is none.")]
    assert [fault.detail for fault in refused(world, cluster, settings={"ssh_cidrs": []})] == ["There is none."]


def test_only_a_failed_creation_takes_other_settings() -> None:
    world, cluster = failed_at("network")
    resume(world, cluster, settings={"key_pair": "other"})
    with pytest.raises(IllegalTransition, match="is preparing; only a creation that has failed"):
        resume(world, cluster, settings={"key_pair": "third"})
    assert world.drive(cluster, "provision_cluster") == "ready"
    with pytest.raises(IllegalTransition, match="is ready"):
        resume(world, cluster, settings={"key_pair": "third"})


def test_a_line_that_is_only_intended_counts_as_made() -> None:
    world, cluster = failed_at("network")
    world.provider.late["security"] = [VendorRefused("too late")]
    resume(world, cluster, settings={"key_pair": "other"})
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    faults = refused(world, cluster, settings={"region_name": "eu-west-1"})
    assert [fault.pointer for fault in faults] == ["/settings/region_name"]
