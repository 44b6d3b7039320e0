"""Packs are applied with the rights of whoever has chosen them, and stay so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.records import Operation
from stockyard.domain.values.rights import ADMIN, OPERATOR
from stockyard.errors import IllegalTransition, InvalidInput, PermissionDenied
from stockyard.operations.clusters.changes.queue import enqueue
from stockyard.operations.profiles.clusters import compare, profiles_view
from stockyard.operations.profiles.profiles import find_profile
from stockyard.ports import Replace
from tests.unit.operations.clusters.managed_world import USER
from tests.unit.operations.profiles.packs_world import PacksWorld

CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: tools}, data: {image: '%s'}}"
ROLE = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: []}"
ROLES = {"name": "roles", "version": "1.0.0"}
IMAGE = {"name": "image", "default": "a"}


def profile(world: PacksWorld, name: str, rights: str, *contents: str, **more: object) -> None:
    """A profile of one pack, made by somebody with these rights."""
    before, world.rights = world.rights, rights
    manifests = [{"name": f"m{number}", "content": content} for number, content in enumerate(contents)]
    pack = {"layer": "addon", "name": name, "tag": "1.0", "manifests": manifests}
    world.make(name=name, variables=[IMAGE], packs=[pack], **more)
    world.rights = before


@pytest.fixture
def ready(packs_world: PacksWorld) -> PacksWorld:
    profile(packs_world, "config", OPERATOR, CONFIG % "{{ .profile.var.image }}")
    profile(packs_world, "roles", OPERATOR, ROLE)
    profile(packs_world, "allowed", ADMIN, ROLE.replace("reader", "allowed"))
    packs_world.create()
    packs_world.drive("provision_managed")
    packs_world.rights = OPERATOR
    return packs_world


def rights_of(world: PacksWorld) -> dict[str, str]:
    return {choice["name"]: choice["rights"] for choice in profiles_view(world.services, world.cluster)["profiles"]}


def test_each_pack_is_applied_with_the_rights_of_its_choice(ready: PacksWorld) -> None:
    ready.put({"name": "config"}, {"name": "allowed"})
    assert ready.drive() == "changed"
    assert rights_of(ready) == {"config": OPERATOR, "allowed": ADMIN}
    assert ready.packs.acted == [(OPERATOR, "apply ConfigMap settings"), (ADMIN, "apply ClusterRole allowed")]


def test_what_an_operator_may_not_choose_is_named_and_an_administrator_may(ready: PacksWorld) -> None:
    with pytest.raises(InvalidInput) as refused:
        ready.put({"name": "roles"})
    (fault,) = refused.value.errors
    assert fault.pointer == "/profiles/0"
    assert fault.detail.startswith("pack roles: ClusterRole reader: kind: ClusterRole of rbac")
    with pytest.raises(InvalidInput):
        ready.create({"name": "roles"})
    ready.rights = ADMIN
    with pytest.raises(InvalidInput, match="by the number of the version"):
        ready.put({"name": "roles"})
    ready.put(ROLES)
    assert ready.drive() == "changed"
    assert ready.packs.acted == [(ADMIN, "apply ClusterRole reader")]


def test_what_an_administrator_has_chosen_stays_so_beside_an_operators_choice(ready: PacksWorld) -> None:
    ready.rights = ADMIN
    ready.put(ROLES)
    ready.drive()
    ready.rights = OPERATOR
    ready.put(ROLES, {"name": "config"})
    assert ready.drive() == "changed"
    assert rights_of(ready) == {"roles": ADMIN, "config": OPERATOR}
    with pytest.raises(InvalidInput) as refused:
        ready.put({"name": "config"})
    assert "ClusterRole reader would be removed" in refused.value.errors[0].detail
    ready.rights = ADMIN
    ready.put()
    assert ready.drive() == "changed"
    assert ready.packs.acted[-2:] == [(ADMIN, "delete ConfigMap settings"), (ADMIN, "delete ClusterRole reader")]


def test_an_operator_takes_an_own_profile_away_with_an_operators_rights(ready: PacksWorld) -> None:
    ready.put({"name": "config"})
    ready.drive()
    ready.put()
    assert ready.drive() == "changed"
    assert ready.packs.acted[-1] == (OPERATOR, "delete ConfigMap settings")


def test_what_the_cluster_refuses_is_told_with_its_object(ready: PacksWorld) -> None:
    refusal = PermissionDenied("kubernetes apply ConfigMap tools/settings: 403 Forbidden", code="Forbidden")
    ready.packs.faults = [refusal]
    ready.put({"name": "config"})
    assert ready.drive() != "changed"
    (status,) = ready.record.packs
    assert (status.condition, "ConfigMap tools/settings: 403" in status.message) == ("Failed", True)
    assert ready.operation.error is not None
    assert "ConfigMap tools/settings" in ready.operation.error.cause


def test_rules_that_have_become_stricter_hold_for_what_was_chosen_before(ready: PacksWorld) -> None:
    ready.rights = ADMIN
    ready.put(ROLES)
    record = ready.record
    lesser = tuple({**choice, "rights": OPERATOR} for choice in record.profiles)
    ready.services.store.commit(Replace(replace(record, profiles=lesser, version=record.version + 1)))
    assert ready.drive() != "changed"
    assert ready.packs.acted == []
    assert "ClusterRole reader: kind: ClusterRole of" in ready.record.packs[0].message


def test_a_cluster_of_an_earlier_release_keeps_its_packs(ready: PacksWorld) -> None:
    ready.rights = ADMIN
    ready.put(ROLES)
    record = ready.record
    earlier = tuple({name: value for name, value in choice.items() if name != "rights"} for choice in record.profiles)
    ready.services.store.commit(Replace(replace(record, profiles=earlier, version=record.version + 1)))
    assert ready.drive() == "changed"
    assert ready.packs.acted == [(ADMIN, "apply ClusterRole reader")]
    assert rights_of(ready) == {"roles": ADMIN}


def test_an_administrators_queued_choice_gives_no_rights_to_a_version_that_comes_later(ready: PacksWorld) -> None:
    ready.patch({"settings": {"public_access_cidrs": ["198.51.100.1/32"]}})
    patch = read(ClusterPatch, {"profiles": [{"name": "config"}], "queue": True}).document()
    queued = enqueue(ready.services, ready.id, patch, USER, "r", rights=ADMIN)
    pack = {"layer": "addon", "name": "config", "tag": "2.0", "manifests": [{"name": "r", "content": ROLE}]}
    ready.add(find_profile(ready.services, "config"), version="2.0.0", variables=[], packs=[pack])
    assert ready.drive() == "changed"
    operation = ready.services.store.get(Operation, queued.id)
    assert operation is not None
    assert (operation.status, ready.packs.acted) == ("failed", [])
    assert operation.error is not None
    assert "ClusterRole reader" in str(operation.error)


def test_a_namespace_that_was_closed_is_told_by_the_pack_and_by_a_comparison(ready: PacksWorld) -> None:
    refusal = PermissionDenied("metadata.namespace: tools is not open", hint="An administrator labels it.")
    ready.put({"name": "config"})
    ready.drive()
    ready.packs.faults = [refusal]
    with pytest.raises(IllegalTransition, match="tools is not open"):
        compare(ready.services, ready.cluster, USER)
    ready.put({"name": "config"})
    ready.packs.faults = [None, refusal]
    assert ready.drive() != "changed"
    assert ready.record.packs[0].condition == "Failed"
    assert ready.operation.error is not None
    assert "label stockyard.dev/packs=operators" in ready.operation.error.cause
