"""Calls of a sweep of an account with many clusters, counted by a fake of AWS."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.errors import VendorError
from stockyard.operations.listing import every
from stockyard.operations.sweep.listing import ROUND, account_listing
from stockyard.ports import Create, Remove, Tagged
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.cloud import AwsCloud
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World, make_world

CLUSTERS, PER_CLUSTER = 100, 4
"""Clusters of the account, and the calls for each of them that a sweep may make."""
INSIDE = {"node_group": 3, "addon": 5, "access_entry": 3, "pod_identity": 2}
ROLES = 6
SINGULAR = {
    "nodegroups": ("describe_nodegroup", "nodegroupName", "nodegroup", "node_group"),
    "addons": ("describe_addon", "addonName", "addon", "addon"),
    "accessEntries": ("describe_access_entry", "principalArn", "accessEntry", "access_entry"),
    "associations": ("describe_pod_identity_association", "associationId", "association", "pod_identity"),
}
LISTS = {
    "list_nodegroups": "nodegroups",
    "list_addons": "addons",
    "list_access_entries": "accessEntries",
    "list_pod_identity_associations": "associations",
}


@dataclass
class CountingAws:
    """The account's clusters with what stands in them, by name, each with the tags of its owner."""

    owners: dict[str, str] = field(default_factory=dict)
    """Name of a cluster -> the record it is of."""
    calls: Counter[str] = field(default_factory=Counter)

    def tags_of(self, cluster: str) -> dict[str, str]:
        return {**tags.of_tenant("inst-1", "acme"), tags.RESOURCE: self.owners[cluster], tags.GENERATION: "1"}

    def get(self, service: str, _region: str, _config: object = None) -> Client:
        return Client(self, service)

    def listed(self, operation: str, parameters: Mapping[str, Any]) -> list[Any]:
        if operation == "list_clusters":
            return list(self.owners)
        if operation == "list_roles":
            return [{"RoleName": f"{name}-role-{index}"} for name in self.owners for index in range(ROLES)]
        kind = SINGULAR[LISTS[operation]][3] if operation in LISTS else None
        names = [f"{kind}-{index}" for index in range(INSIDE[kind])] if kind else []
        return [{"associationId": name} for name in names] if kind == "pod_identity" else list(names)

    def described(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if operation == "describe_cluster":
            return {"cluster": {"tags": self.tags_of(parameters["name"])}}
        if operation == "get_role":
            return {"Role": {"Tags": tags.pairs(self.tags_of(parameters["RoleName"].partition("-role-")[0]))}}
        for describe, _, key, _ in SINGULAR.values():
            if operation == describe:
                return {key: {"tags": self.tags_of(parameters["clusterName"])}}
        return defaultdict(list)


@dataclass
class Client:
    aws: CountingAws
    service: str

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> dict[str, Any]:
            self.aws.calls[operation] += 1
            return self.aws.described(operation, parameters)

        return call

    def get_paginator(self, operation: str) -> Any:
        aws = self.aws

        class Paginator:
            def paginate(self, **parameters: Any) -> Iterator[dict[str, Any]]:
                items = aws.listed(operation, parameters)
                for start in range(0, len(items) or 1, 100):
                    aws.calls[operation] += 1
                    page = items[start : start + 100]
                    yield {LISTS.get(operation, {"list_clusters": "clusters"}.get(operation, "Roles")): page}

        return Paginator()


@dataclass
class Yard:
    world: World
    aws: CountingAws
    account: CloudAccount

    def sweep(self) -> tuple[list[Tagged], Counter[str]]:
        """Things that a sweep lists, and its calls."""
        skipped: list[tuple[str, VendorError]] = []
        self.aws.calls.clear()
        lines = every(self.world.services.store, Resource)
        listing = account_listing(self.world.services, self.account, lines)
        things = list(listing.things(["us-east-1"], lambda *failure: skipped.append(failure)))
        assert not skipped
        return things, Counter(self.aws.calls)


@pytest.fixture
def yard() -> Yard:
    world, aws = make_world(), CountingAws()
    cloud = AwsCloud.__new__(AwsCloud)
    cloud._sessions = type("Sessions", (), {"of": lambda *_: aws})()
    services = with_ports(world.services, clouds={"aws": cloud})
    world = replace(world, services=services)
    account = next(iter(services.store.list(CloudAccount).items))
    now = services.now()
    for number in range(CLUSTERS):
        cluster = Cluster(
            f"clu_{number:03}", f"c{number}", "", "k8s", "aws", int(account.id), f"c{number}", "ready", {}, now, now
        )
        aws.owners[cluster.name] = cluster.id
        lines = [("eks_cluster", cluster.name), *(("role", f"{cluster.name}-role-{index}") for index in range(ROLES))]
        lines += [(kind, f"{cluster.name}/{kind}-{index}") for kind, count in INSIDE.items() for index in range(count)]
        services.store.commit(Create(cluster), *(Create(_line(cluster, *line, now)) for line in lines))
    return Yard(world, aws, account)


def _line(cluster: Cluster, kind: str, vendor_id: str, now: str) -> Resource:
    line_id = f"{cluster.id}/phase/{kind}/{vendor_id}"
    line_values = ("us-east-1", cluster.cloud_account_id, now, vendor_id)
    return Resource(line_id, cluster.id, "phase", kind, vendor_id, "token", "made", *line_values)


def test_a_sweep_asks_little_for_what_the_ledger_says(yard: Yard) -> None:
    things: dict[tuple[str, str], str] = {}
    for _ in range(ROUND):
        listed, calls = yard.sweep()
        things |= {(thing.kind, thing.vendor_id): thing.resource_id for thing in listed}
        assert calls.total() <= PER_CLUSTER * CLUSTERS, calls
        assert calls["list_clusters"] == 1
        assert not calls["get_role"] + calls["describe_cluster"] + calls["describe_addon"]
    # What it lists is what asking for everything lists, each cluster's insides within a round.
    everything = yard.world.services.clouds["aws"].tagged(yard.account, "inst-1", "acme", ["us-east-1"])
    assert things == {(thing.kind, thing.vendor_id): thing.resource_id for thing in everything}
    assert len(everything) == CLUSTERS * (1 + ROLES + sum(INSIDE.values()))


def test_what_is_of_no_record_is_found_with_all_its_tags_in_each_sweep(yard: Yard) -> None:
    yard.world.services.store.commit(Remove(Cluster, "clu_042"))
    for _ in range(ROUND + 1):
        listed, calls = yard.sweep()
        orphans = [thing for thing in listed if thing.resource_id == "clu_042"]
        assert len(orphans) == 1 + ROLES + sum(INSIDE.values())
        assert {thing.generation for thing in orphans} == {"1"}
        assert calls["get_role"] == ROLES
        assert calls.total() <= PER_CLUSTER * CLUSTERS


def test_few_clusters_are_looked_into_each_time(yard: Yard) -> None:
    store = yard.world.services.store
    for number in range(5, CLUSTERS):
        store.commit(Remove(Cluster, f"clu_{number:03}"))
        del yard.aws.owners[f"c{number}"]
    for _ in range(2):
        listed, _ = yard.sweep()
        assert len(listed) == 5 * (1 + ROLES + sum(INSIDE.values()))
