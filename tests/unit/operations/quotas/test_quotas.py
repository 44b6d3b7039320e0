"""Quotas: their defaults, which can be set, what a claim counts for, and the published texts of refusals."""

from __future__ import annotations

import pytest

from stockyard.domain.records import Counter
from stockyard.errors import Conflict, NotFound, PreconditionFailed
from stockyard.operations.node_providers.allowed_types import allowed_types, allowed_view, set_allowed_types
from stockyard.operations.quotas.limits import limit_of, refusal, set_quota, view, views
from stockyard.operations.quotas.node_claims import claim_quota_writes, quota_refusal
from stockyard.ports import Add, Create, Put
from tests.unit.operations.conftest import World


def limits_and_use(world: World) -> dict[str, tuple[int | None, int]]:
    return {quota["name"]: (quota["limit"], quota["used"]) for quota in views(world.services)}


def test_quotas_with_default_are_always_listed(world: World) -> None:
    assert limits_and_use(world) == {
        "clusters": (20, 0),
        "cloud_accounts": (20, 0),
        "node_groups": (20, 0),
        "cluster_profiles": (50, 0),
        "node_providers": (50, 0),
        "nodeclaims": (5000, 0),
        "nodes_per_eks_group": (1000, 0),
        "nodes_per_group": (100, 0),
        "os_images": (100, 0),
        "sites": (20, 0),
    }


def test_quotas_without_default_limit_nothing_until_set(world: World) -> None:
    services = world.services
    assert limit_of(services, "nodeclaims.provider=lab") is None
    assert view(services, "nodeclaims.provider=lab")["limit"] is None
    set_quota(services, "nodeclaims.provider=lab", 3, 0)
    set_quota(services, "per-user.nodeclaims", 2, 0)
    assert limits_and_use(world)["nodeclaims.provider=lab"] == (3, 0)
    assert limits_and_use(world)["per-user.nodeclaims"] == (2, 0)
    assert limit_of(services, "per-user.nodeclaims") == 2
    with pytest.raises(PreconditionFailed):
        set_quota(services, "per-user.nodeclaims", 5, 0)
    assert set_quota(services, "per-user.nodeclaims", 5, 1)["version"] == 2


def test_a_quota_goes_back_to_its_default(world: World) -> None:
    services = world.services
    assert set_quota(services, "clusters", None, 0)["limit"] == 20
    set_quota(services, "clusters", 3, 0)
    set_quota(services, "per-user.nodeclaims", 2, 0)
    with pytest.raises(PreconditionFailed):
        set_quota(services, "clusters", None, 0)
    back = set_quota(services, "clusters", None, 1)
    assert (back["limit"], back["version"]) == (20, 0)
    assert set_quota(services, "per-user.nodeclaims", None, 1)["limit"] is None
    assert limits_and_use(world)["clusters"] == (20, 0)
    assert "per-user.nodeclaims" not in limits_and_use(world)
    assert set_quota(services, "clusters", 4, 0)["version"] == 1


@pytest.mark.parametrize(
    ("name", "limit", "words"),
    [
        ("clusters", 1, "1 cluster."),
        ("clusters", 2, "2 clusters."),
        ("clusters", 0, "0 clusters."),
        ("cloud_accounts", 1, "1 cloud account."),
    ],
)
def test_refusal_counts_as_people_do(name: str, limit: int, words: str) -> None:
    assert refusal(name, limit).detail == f"The quota '{name}' allows {words}"


@pytest.mark.parametrize(
    "name", ["pods", "nodeclaims.provider=", "nodeclaims.provider=A", "per-user.clusters", "per-user.", "nodeclaims/x"]
)
def test_unknown_quota_names_are_refused(world: World, name: str) -> None:
    with pytest.raises(NotFound):
        set_quota(world.services, name, 1, 0)


def counted(world: World) -> dict[str, int]:
    page = world.services.store.list(Counter, prefix="quota/", limit=100)
    return {counter.id.removeprefix("quota/"): counter.value for counter in page.items}


def test_claim_counts_for_project_provider_and_user_until_deleted(world: World) -> None:
    services = world.services
    services.store.commit(*claim_quota_writes(services, "lab", "user:ann", 1))
    services.store.commit(*claim_quota_writes(services, "lab", "user:ann", 1))
    services.store.commit(*claim_quota_writes(services, "", "user:bob", 1))
    assert counted(world) == {
        "nodeclaims": 3,
        "nodeclaims.provider=lab": 2,
        "per-user.nodeclaims/user:ann": 2,
        "per-user.nodeclaims/user:bob": 1,
        "per-user.nodeclaims.provider=lab/user:ann": 2,
    }
    set_quota(services, "per-user.nodeclaims", 2, 0)
    assert limits_and_use(world)["per-user.nodeclaims"] == (2, 2)
    services.store.commit(*claim_quota_writes(services, "lab", "user:ann", -1))
    services.store.commit(*claim_quota_writes(services, "lab", "user:ann", -1))
    services.store.commit(*claim_quota_writes(services, "", "user:bob", -1))
    assert set(counted(world).values()) == {0}


@pytest.mark.parametrize(
    ("quota", "limit", "text"),
    [
        ("nodeclaims", 1, "because project nodeclaims limit of 1 would be exceeded"),
        ("nodeclaims.provider=lab", 0, "because project nodeclaims.provider=lab limit of 0 would be exceeded"),
        ("per-user.nodeclaims", 1, "because per-user nodeclaims limit of 1 would be exceeded"),
        (
            "per-user.nodeclaims.provider=lab",
            1,
            "because per-user nodeclaims.provider=lab limit of 1 would be exceeded",
        ),
    ],
)
def test_exceeded_quota_is_refused_with_published_text(world: World, quota: str, limit: int, text: str) -> None:
    services = world.services
    set_quota(services, quota, limit, 0)
    for _ in range(limit):
        services.store.commit(*claim_quota_writes(services, "lab", "user:ann", 1))
    writes = claim_quota_writes(services, "lab", "user:ann", 1)
    with pytest.raises(Conflict) as conflict:
        services.store.commit(*writes)
    assert conflict.value.index is not None
    assert quota_refusal(writes, conflict.value.index).detail == f"Cannot create nodeclaim, {text}."
    if quota.startswith("per-user"):
        services.store.commit(*claim_quota_writes(services, "lab", "user:bob", 1))


def test_refusal_of_other_writes_is_an_error() -> None:
    for write in (Add("quota/clusters", 1, 20), Put(Counter("quota/nodeclaims"))):
        with pytest.raises(ValueError, match="no quota of claims"):
            quota_refusal([write], 0)


def test_all_types_are_allowed_until_list_is_set(world: World) -> None:
    services = world.services
    assert (allowed_types(services), allowed_view(services)["version"]) == (None, 0)
    view = set_allowed_types(services, ["lab.small", "aws.*"], 0)
    assert (view["allowed"], view["version"], view["updated_at"]) == (["lab.small", "aws.*"], 1, services.now())
    assert allowed_types(services) == ("lab.small", "aws.*")
    with pytest.raises(PreconditionFailed):
        set_allowed_types(services, [], 0)
    assert set_allowed_types(services, [], 1)["version"] == 2
    assert allowed_types(services) == ()
    set_allowed_types(services, None, 2)
    assert allowed_types(services) is None
    assert allowed_view(services)["version"] == 3


def test_concurrent_change_of_allowed_types_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    services = world.services
    commit = services.store.commit

    def first(*writes: object) -> None:
        monkeypatch.setattr(services.store, "commit", commit)
        set_allowed_types(services, ["other.*"], 0)
        commit(*writes)

    monkeypatch.setattr(services.store, "commit", first)
    with pytest.raises(PreconditionFailed, match="someone else"):
        set_allowed_types(services, ["lab.*"], 0)
    assert allowed_types(services) == ("other.*",)


def test_quota_can_be_set_below_existing_use(world: World) -> None:
    services = world.services
    services.store.commit(Create(Counter("quota/nodeclaims.provider=lab", 7)))
    assert set_quota(services, "nodeclaims.provider=lab", 5, 0)["used"] == 7
