"""Packs of a cluster: applied layer by layer, waited for, removed when no version has them any more."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.profiles.records import ClusterPacks, ProfileUse
from stockyard.domain.records import Event, Operation
from stockyard.errors import IllegalTransition, InUse, InvalidInput, VendorRefused, VendorUnavailable
from stockyard.operations.clusters.changes.queue import enqueue
from stockyard.operations.clusters.changes.reconfigure import check_alone
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.creation.create import plan_creation
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.clusters.tree import cluster_tree
from stockyard.operations.listing import every
from stockyard.operations.profiles import clusters, profiles
from tests.unit.operations.clusters.managed_world import USER
from tests.unit.operations.profiles.packs_world import DOCUMENT, PacksWorld

CHOICE = {"name": "base", "variables": {"env": "prod"}}


def without_server(**pack: Any) -> list[dict[str, Any]]:
    packs = deepcopy(DOCUMENT["packs"])[:2]
    return [packs[0], {**packs[1], **pack}]


def test_a_new_cluster_gets_its_packs_in_order_of_layers(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.create(CHOICE)
    assert packs_world.conditions() == {"kubernetes": "Pending", "net": "Pending", "server": "Pending"}
    assert packs_world.drive("provision_managed") == "ready"
    assert packs_world.packs.applied == ["DaemonSet agent", "Namespace tools", "Deployment server"]
    server = packs_world.packs.objects["Deployment", "tools", "server"]
    assert (server["metadata"]["labels"], server["spec"]) == (
        {"env": "prod", "stockyard.dev/profile": "base"},
        {"replicas": 1},
    )
    assert set(packs_world.conditions().values()) == {"Ready"}
    assert all(status.started_at and status.ended_at for status in packs_world.record.packs)
    assert packs_world.cluster.kubernetes_version == "1.34"
    reasons = [event.reason for event in every(packs_world.services.store, Event) if event.subject.endswith("/server")]
    assert reasons == ["PackApplying", "PackReady"]


def test_a_new_cluster_waits_for_no_pods_that_need_workers(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.packs.unready = {"Deployment"}
    packs_world.create(CHOICE)
    assert packs_world.drive("provision_managed") == "ready"
    assert packs_world.conditions() == {"kubernetes": "Ready", "net": "Ready", "server": "Applying"}
    message = next(status.message for status in packs_world.record.packs if status.name == "server")
    assert message == "Deployment tools/server is not seen by its controller yet"
    packs_world.packs.unready = set()
    clusters.compare(packs_world.services, packs_world.cluster, USER)
    assert set(packs_world.conditions().values()) == {"Ready"}
    assert packs_world.record.drift == ()


def test_a_change_of_profiles_waits_for_all_pods(packs_world: PacksWorld) -> None:
    packs_world.make(packs=DOCUMENT["packs"][1:])
    packs_world.create()
    packs_world.drive("provision_managed")
    packs_world.packs.unready = {"Deployment"}
    packs_world.put(CHOICE)
    assert packs_world.drive() == "not_changed"
    assert packs_world.operation.error is not None
    assert "Deployment tools/server" in packs_world.operation.error.cause


def test_a_change_of_something_else_waits_for_no_pod_and_asks_nothing_of_ready_packs(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.packs.unready = {"Deployment"}
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    packs_world.patch({"settings": {"public_access_cidrs": ["198.51.100.1/32"]}})
    assert packs_world.drive() == "changed"
    assert packs_world.conditions()["server"] == "Applying"
    packs_world.packs.unready = set()
    packs_world.patch({"settings": {"public_access_cidrs": ["198.51.100.2/32"]}})
    assert packs_world.drive() == "changed"
    assert packs_world.conditions()["server"] == "Ready"
    packs_world.packs.faults = [VendorRefused("nobody is to ask")]
    packs_world.patch({"settings": {"public_access_cidrs": ["198.51.100.3/32"]}})
    assert packs_world.drive() == "changed"


def test_a_later_layer_waits_for_an_earlier_one(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.packs.unready = {"DaemonSet"}
    packs_world.create(CHOICE)
    assert packs_world.drive("provision_managed") == "not_deployed"
    assert packs_world.packs.applied == ["DaemonSet agent"]
    assert packs_world.conditions() == {"kubernetes": "Ready", "net": "Applying", "server": "Pending"}
    assert packs_world.operation.error is not None
    assert "DaemonSet agent is not seen by its controller yet" in packs_world.operation.error.cause


def test_a_refused_object_fails_its_pack_and_a_resume_goes_on(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.packs.faults = [None, None, VendorRefused("422 Invalid: spec.replicas")]
    packs_world.create(CHOICE)
    assert packs_world.drive("provision_managed") == "not_deployed"
    failed = next(status for status in packs_world.record.packs if status.condition == "Failed")
    assert (failed.name, failed.message) == ("server", "Namespace tools: 422 Invalid: spec.replicas")
    assert packs_world.operation.error is not None
    assert packs_world.operation.error.phase == "profile"
    resume_cluster(packs_world.services, packs_world.id, USER)
    assert packs_world.drive("provision_managed") == "ready"
    assert set(packs_world.conditions().values()) == {"Ready"}


def test_a_cluster_without_an_answer_is_asked_again(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.packs.faults = [VendorUnavailable("no answer"), VendorUnavailable("no answer")]
    packs_world.create(CHOICE)
    assert packs_world.drive("provision_managed") == "ready"


def test_a_new_version_removes_what_it_has_no_more(packs_world: PacksWorld) -> None:
    profile = packs_world.make()
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    packs_world.add(profile, version="2.0.0", packs=without_server(tag="2.1"))
    plan = packs_world.plan({"profiles": [CHOICE]})
    assert {thing["name"] for thing in plan["deletes"]} == {"tools", "tools/server"}
    (tag,) = (change for change in plan["changes"] if change["pointer"] == "/packs/base~1net/tag")
    assert (tag["before"], tag["after"], tag["field"]) == ("2.0", "2.1", "packs[base/net].tag")
    operation = packs_world.put(CHOICE)
    assert operation.changes[0]["after"] == [{"name": "base", "version": "2.0.0"}]
    assert packs_world.drive() == "changed"
    assert packs_world.packs.deleted == ["Deployment server", "Namespace tools"]
    assert list(packs_world.packs.objects) == [("DaemonSet", "", "agent")]
    assert len(packs_world.record.objects) == 1


def test_an_object_that_somebody_has_made_anew_stays(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    packs_world.packs.objects["Namespace", "", "tools"]["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    packs_world.put()
    assert packs_world.drive() == "changed"
    assert list(packs_world.packs.objects) == [("Namespace", "", "tools")]
    assert not packs_world.packs.account
    assert packs_world.services.store.get(ClusterPacks, packs_world.id) is None, "it costs nothing any more"


def test_the_account_goes_even_when_the_last_object_went_before(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    packs_world.fail_forgetting(VendorUnavailable("no answer"))
    packs_world.put()
    assert packs_world.drive() == "changed"
    assert packs_world.packs.objects == {}
    assert not packs_world.packs.account
    assert packs_world.services.store.get(ClusterPacks, packs_world.id) is None
    packs_world.put(CHOICE)
    assert packs_world.drive() == "changed"
    assert packs_world.packs.account
    assert set(packs_world.conditions().values()) == {"Ready"}


def test_a_cluster_without_profiles_skips_the_phase(packs_world: PacksWorld) -> None:
    packs_world.create()
    assert packs_world.drive("provision_managed") == "ready"
    phases = {phase.name: phase for phase in packs_world.operation.phases}
    assert (phases["profile"].state, phases["profile"].message) == ("skipped", "The cluster has no profile.")
    assert not packs_world.packs.account
    assert packs_world.services.store.get(ClusterPacks, packs_world.id) is None


def test_values_of_a_cluster_are_laid_over_those_of_the_profile(packs_world: PacksWorld) -> None:
    packs_world.make()
    choice = {**CHOICE, "pack_values": {"server": {"replicas": 3}}}
    plan = plan_creation(packs_world.services, packs_world.new_cluster(choice))
    assert {"kind": "Deployment", "name": "tools/server"} in plan["creates"]
    values = {"pointer": "/packs/base~1server/values", "before": None, "after": {"replicas": 3}}
    assert values in plan["changes"]


@pytest.mark.parametrize(
    ("choice", "pointer"),
    [
        ({"name": "base"}, "/profiles/0/variables/env"),
        ({"name": "base", "variables": {"env": "9"}}, "/profiles/0/variables/env"),
        ({"name": "base", "variables": {"env": "a", "other": 1}}, "/profiles/0/variables/other"),
        ({**CHOICE, "pack_values": {"nothing": {}}}, "/profiles/0/pack_values/nothing"),
        ({**CHOICE, "version": "9.0.0"}, "/profiles/0/version"),
        ({"name": "other"}, "/profiles/0/name"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused_at_its_field(
    packs_world: PacksWorld, choice: dict[str, Any], pointer: str
) -> None:
    packs_world.make()
    with pytest.raises(InvalidInput) as refusal:
        packs_world.create(choice)
    assert [problem.pointer for problem in refusal.value.errors] == [pointer]


def test_another_minor_than_the_clusters_is_refused(packs_world: PacksWorld) -> None:
    packs_world.make()
    with pytest.raises(InvalidInput) as refusal:
        plan_creation(packs_world.services, packs_world.new_cluster(CHOICE, kubernetes_version="1.35"))
    assert refusal.value.errors[0].pointer == "/kubernetes_version"


def test_a_profile_that_a_cluster_uses_is_not_deleted(packs_world: PacksWorld) -> None:
    profile = packs_world.make()
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    with pytest.raises(InUse, match=packs_world.id):
        profiles.delete_profile(packs_world.services, "base", USER)
    delete_cluster(packs_world.services, packs_world.id, USER)
    packs_world.drive("delete_managed")
    assert not list(every(packs_world.services.store, ProfileUse))
    assert not list(every(packs_world.services.store, ClusterPacks))
    operation = profiles.delete_profile(packs_world.services, "base", USER)
    assert packs_world.services.store.get(Operation, operation.id) == operation
    assert (operation.subject, operation.subject_name) == (profile.id, "base")
    assert not list(packs_world.services.store.list(type(profile)).items)


def test_drift_is_shown_and_not_changed(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    packs_world.packs.objects["Deployment", "tools", "server"]["spec"] = {"replicas": 7}
    del packs_world.packs.objects["DaemonSet", "", "agent"]
    clusters.compare(packs_world.services, packs_world.cluster, USER)
    view = clusters.profiles_view(packs_world.services, packs_world.cluster)
    assert view["drift"] == ["net: DaemonSet agent is not there", "server: Deployment tools/server is different"]
    assert packs_world.packs.objects["Deployment", "tools", "server"]["spec"] == {"replicas": 7}
    packs_world.put(CHOICE)
    packs_world.drive()
    assert packs_world.packs.objects["Deployment", "tools", "server"]["spec"] == {"replicas": 1}


def test_profiles_change_together_with_settings_in_one_operation(packs_world: PacksWorld) -> None:
    packs_world.make(packs=DOCUMENT["packs"][1:])
    packs_world.create()
    packs_world.drive("provision_managed")
    packs_world.packs.unready = {"Deployment"}
    patch = {"profiles": [CHOICE], "settings": {"public_access_cidrs": ["198.51.100.1/32"]}}
    plan = packs_world.plan(patch)
    assert plan["steps"][-1] == "Apply the packs of base 1.0.0 layer by layer: 3 objects come, 0 change, 0 go."
    assert [change["pointer"] for change in plan["changes"]][:2] == ["/settings/public_access_cidrs", "/profiles"]
    packs_world.patch(patch)
    packs_world.packs.unready = set()
    assert packs_world.drive() == "changed"
    assert set(packs_world.conditions().values()) == {"Ready"}
    assert packs_world.cluster.settings["public_access_cidrs"] == ["198.51.100.1/32"]


def test_an_upgrade_brings_the_version_of_a_profile_for_the_new_minor(packs_world: PacksWorld) -> None:
    profile = packs_world.make()
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    minor, *packs = DOCUMENT["packs"]
    packs_world.add(profile, version="2.0.0", packs=[{**minor, "tag": "1.35"}, *packs])
    with pytest.raises(InvalidInput) as refusal:
        packs_world.put(CHOICE)
    (fault,) = refusal.value.errors
    assert fault.pointer == "/profiles"
    assert fault.detail.endswith("the cluster's minor 1.34; change kubernetes_version with it")
    packs_world.patch({"profiles": [CHOICE], "kubernetes_version": "1.35"})
    assert packs_world.operation.kind == "upgrade_cluster"
    assert packs_world.drive("upgrade_managed") == "upgraded"
    assert (packs_world.cluster.kubernetes_version, packs_world.record.packs[0].tag) == ("1.35", "1.35")


def test_a_queued_change_of_profiles_is_read_when_its_turn_comes(packs_world: PacksWorld) -> None:
    profile = packs_world.make()
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    packs_world.patch({"settings": {"public_access_cidrs": ["198.51.100.1/32"]}})
    patch = read(ClusterPatch, {"profiles": [CHOICE], "queue": True}).document()
    queued = enqueue(packs_world.services, packs_world.id, patch, USER, "r")
    packs_world.add(profile, version="2.0.0", packs=without_server())
    assert packs_world.drive() == "changed"
    assert packs_world.cluster.operation_id == queued.id
    assert packs_world.operation.changes[0]["after"] == [{"name": "base", "version": "2.0.0"}]
    assert packs_world.drive() == "changed"
    assert list(packs_world.packs.objects) == [("DaemonSet", "", "agent")]


def test_profiles_do_not_change_with_what_waits_for_approval(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.create()
    packs_world.drive("provision_managed")
    cluster = replace(packs_world.cluster, settings={**packs_world.cluster.settings, "repave_approval": "required"})
    with pytest.raises(InvalidInput) as refusal:
        check_alone(cluster, [{"code": "KubernetesVersionChanged", "message": "every node is replaced"}])
    assert [fault.pointer for fault in refusal.value.errors] == ["/profiles"]
    check_alone(cluster, [])


def test_the_tree_of_a_cluster_has_its_packs(packs_world: PacksWorld) -> None:
    packs_world.make()
    packs_world.packs.unready = {"Deployment"}
    packs_world.create(CHOICE)
    packs_world.drive("provision_managed")
    tree = cluster_tree(packs_world.services, packs_world.cluster)
    (profile,) = (child for child in tree["children"] if child["kind"] == "profile")
    assert (profile["name"], profile["status"]) == ("base 1.0.0", "Applying")
    assert [(pack["name"], pack["status"]) for pack in profile["children"]] == [
        ("k8s kubernetes 1.34", "Ready"),
        ("cni net 2.0", "Ready"),
        ("addon server 3.1", "Applying"),
    ]


def test_a_number_and_a_boolean_may_be_written_as_text(packs_world: PacksWorld) -> None:
    variables = [*DOCUMENT["variables"], {"name": "count", "type": "number"}, {"name": "on", "type": "boolean"}]
    packs_world.make(variables=variables)
    packs_world.create({"name": "base", "variables": {"env": "prod", "count": "3", "on": "true"}})
    (profile,) = packs_world.record.profiles
    assert profile["variables"] == {"env": "prod", "count": 3, "on": True}
    with pytest.raises(InvalidInput, match="must be a number"):
        packs_world.create({"name": "base", "variables": {"env": "prod", "count": "many"}})


def test_a_kind_that_nobody_serves_fails_a_creation_which_goes_on_with_other_profiles(packs_world: PacksWorld) -> None:
    profile = packs_world.make()
    packs_world.packs.unserved = {"DaemonSet"}
    packs_world.create(CHOICE)
    assert packs_world.drive("provision_managed") == "not_deployed"
    error = packs_world.operation.error
    assert error is not None
    assert (error.phase, error.cause) == ("profile", "net: DaemonSet agent: the cluster serves no DaemonSet")
    assert packs_world.conditions()["net"] == "Failed"
    minor, _, server = DOCUMENT["packs"]
    packs_world.add(profile, version="2.0.0", packs=[minor, server])
    with pytest.raises(IllegalTransition, match="only a ready one"):
        packs_world.patch({"profiles": [CHOICE], "settings": {"public_access_cidrs": ["198.51.100.1/32"]}})
    before = packs_world.operation
    packs_world.patch({"profiles": [CHOICE]})
    assert packs_world.operation == before, "nothing begins"
    assert (packs_world.cluster.status, packs_world.record.profiles[0]["version"]) == ("failed", "2.0.0")
    resume_cluster(packs_world.services, packs_world.id, USER)
    assert packs_world.drive("provision_managed") == "ready"
    assert sorted(kind for kind, *_ in packs_world.packs.objects) == ["Deployment", "Namespace"]


def test_a_change_of_profiles_waits_longer_for_a_kind_that_pods_may_bring(packs_world: PacksWorld) -> None:
    packs_world.make(packs=DOCUMENT["packs"][1:])
    packs_world.create()
    packs_world.drive("provision_managed")
    packs_world.packs.unserved = {"DaemonSet"}
    packs_world.put(CHOICE)
    assert packs_world.drive() == "not_changed"
    assert packs_world.conditions()["net"] == "Pending"
    assert packs_world.operation.error is not None
    assert "the cluster serves no DaemonSet" in packs_world.operation.error.cause
