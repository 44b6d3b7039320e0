"""Parts of a cluster of three members are taken away by hand, and then a member is lost: it is replaced, or the
condition says within a minute why not. A change that is ordered meanwhile goes on, and a deletion always ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest
from moto.iam.models import iam_backends

from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.records import NodeEnvironment
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.listing import every
from tests.harness.worlds import inventory
from tests.unit.operations.clusters.balanced_world import USER
from tests.workflows.changes.plane import ACCOUNT, KEY_PAIR, REGION, SIZE, TYPES, Plane, plane

GIVEN_BACK = 420.0
"""Seconds after the loss when somebody brings back what nothing else replaces: longer than a claim waits for a zone."""


@dataclass(frozen=True)
class Loss:
    """``take`` takes it away and gives what brings it back. ``word``: what the condition names until then; empty where
    the product does without it or makes it again."""

    take: Callable[[Plane], Callable[[], object]]
    word: str = ""


def key_pair(plane: Plane) -> Callable[[], object]:
    plane.backend.delete_key_pair(KEY_PAIR)
    return lambda: plane.backend.create_key_pair(KEY_PAIR, "rsa", {})


def image(plane: Plane) -> Callable[[], object]:
    (environment,) = every(plane.services.store, NodeEnvironment)
    names = [entry.partition("=")[0] for entry in environment.outputs["images"].split(",")]
    images = {name: plane.backend.amis.pop(name) for name in names if name in plane.backend.amis}
    assert images
    return lambda: plane.backend.amis.update(images)


def subnet(plane: Plane) -> Callable[[], object]:
    """Take away the subnet of the youngest member."""
    name = plane.backend.get_instance(plane.members()[-1].machine_id).subnet_id
    (subnets,) = [subnets for subnets in plane.backend.subnets.values() if name in subnets] or [{name: None}]
    taken_subnet = subnets.pop(name)
    return lambda: subnets.update({name: taken_subnet})


def every_subnet(plane: Plane) -> Callable[[], object]:
    taken_subnets = []
    for subnets in plane.backend.subnets.values():
        for name in [name for name, each in subnets.items() if each.vpc_id == plane.cluster.settings["vpc_id"]]:
            taken_subnets.append((subnets, subnets.pop(name)))
    return lambda: [subnets.update({each.id: each}) for subnets, each in taken_subnets]


def instance_type(plane: Plane) -> Callable[[], object]:
    plane.limits[TYPES[0]] = -1
    return plane.limits.clear


def profile(plane: Plane) -> Callable[[], object]:
    profiles = iam_backends[ACCOUNT]["aws"].instance_profiles
    names = [name for name, each in profiles.items() if "-ctrl-" in each.name]
    taken_profiles = {name: profiles.pop(name) for name in names}
    assert taken_profiles
    return lambda: profiles.update(taken_profiles)


OWN_NETWORK = {
    "key pair": Loss(key_pair),
    "image": Loss(image),
    "subnet": Loss(subnet),
    "profile": Loss(profile),
    "instance type": Loss(instance_type, TYPES[0]),
}
GIVEN_NETWORK = {"all named subnets": Loss(every_subnet, "subnet"), "named subnet": Loss(subnet)}


def heal(plane: Plane, machine_gone: Loss) -> list[str]:
    """Take it away, lose the youngest member, and let everybody go on. What is wrong."""
    give_back = machine_gone.take(plane)
    plane.later = [(GIVEN_BACK, give_back)] if machine_gone.word else []
    plane.lose(plane.members()[-1])
    ends = plane.drive()
    wrong = [] if len(plane.members()) == SIZE else [f"{len(plane.members())} members: {ends} {plane.operation.error}"]
    late = [(second, count, text) for second, count, text in plane.texts if second >= 60]
    silent = [entry for entry in late if entry[1] < SIZE and not entry[2].startswith("False: 2 of 3")]
    wrong += [f"while one was missing: {entry}" for entry in silent[:1]]
    unnamed = [entry for entry in late if entry[0] < GIVEN_BACK and machine_gone.word not in entry[2]]
    wrong += [f"does not name {machine_gone.word}: {entry}" for entry in unnamed[:1]]
    return wrong


def changed(plane: Plane) -> list[str]:
    """Another type is ordered for the members while one is gone and nobody has missed it yet. What is wrong."""
    key_pair(plane), profile(plane)
    plane.end(plane.members()[-1])
    patch = {"settings": {"control_plane_instance_types": [TYPES[1]]}}
    body, cluster = read(ClusterPatch, patch), plane.cluster
    settings = body.settings_after(cluster)
    _, warnings = change_cluster(
        plane.services, cluster.id, cluster.version, ClusterChange(settings=settings),
        actor=USER, request_id="r",
    )  # fmt: skip
    plane.round()
    ends = plane.drive()
    types = sorted(claim.type_ref.partition(".")[2] for claim in plane.members())
    wrong = [] if types == [TYPES[1]] * SIZE else [f"{types}: {ends} {plane.operation.error}"]
    named = [warning["detail"] for warning in warnings if KEY_PAIR in warning["detail"]]
    return [*wrong, *([] if named else [f"nobody is warned of the key pair: {warnings}"])]


def delete(plane: Plane) -> list[str]:
    """Delete the cluster; what is left of it in the account."""
    plane.lost_at = ""
    delete_cluster(plane.services, plane.id, USER)
    for _ in range(8):
        plane.round()
        plane.drive()
        if plane.cluster is None:
            break
        plane.look(1800)
        plane.sweep()
    kinds = ("instance", "load_balancer", "volume", "security_group", "instance_profile", "role")
    left_things = [thing for thing in inventory.things(ACCOUNT, REGION) if thing[0] in kinds]
    there = [f"the cluster is {plane.cluster.status}"] if plane.cluster is not None else []
    return [*there, *([f"left: {left_things}"] if left_things else [])]


@pytest.mark.parametrize("losses", [OWN_NETWORK, GIVEN_NETWORK], ids=["own network", "given network"])
def test_a_lost_member_is_replaced_or_the_condition_says_why_not(
    losses: dict[str, Loss], record_property: Callable[[str, object], None]
) -> None:
    wrong: dict[str, list[str]] = {}
    with plane(in_given_network=losses is GIVEN_NETWORK) as standing:
        for name, machine_gone in losses.items():
            wrong[name] = heal(standing, machine_gone)
        if losses is OWN_NETWORK:
            wrong["change"] = changed(standing)
        for machine_gone in losses.values():
            with suppress(AssertionError):  # somebody has taken it away already
                machine_gone.take(standing)
        wrong["deletion"] = delete(standing)
    record_property(f"figure:taken_away_{len(losses)}", {name: len(each) for name, each in wrong.items()})
    assert {name: each for name, each in wrong.items() if each} == {}
