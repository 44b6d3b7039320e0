"""Quotas: defaults, those that can be set, what a claim counts for, and the published words of a refusal."""

from __future__ import annotations

import pytest

from stockyard.domain.records import Counter
from stockyard.errors import Conflict, NotFound, PreconditionFailed
from stockyard.operations.allowed_types import allowed_types, allowed_view, set_allowed_types
from stockyard.operations.claim_quotas import claim_quota_writes, quota_refusal
from stockyard.operations.quotas import limit_of, set_quota, view, views
from stockyard.ports import Add, Create, Put
from tests.unit.operations.conftest import World


def shown(world: World) -> dict[str, tuple[int | None, int]]:
    return {one["name"]: (one["limit"], one["used"]) for one in views(world.services.store, world.services.rules)}


def test_those_with_a_default_are_always_there(world: World) -> None:
    assert shown(world) == {"clusters": (20, 0), "node_providers": (50, 0), "nodeclaims": (1000, 0)}


def test_others_limit_nothing_until_they_are_set(world: World) -> None:
    services = world.services
    assert limit_of(services, "nodeclaims.provider=lab") is None
    assert view(services.store, services.rules, "nodeclaims.provider=lab")["limit"] is None
    set_quota(services, "nodeclaims.provider=lab", 3, 0)
    set_quota(services, "per-user.nodeclaims", 2, 0)
    assert shown(world)["nodeclaims.provider=lab"] == (3, 0)
    assert shown(world)["per-user.nodeclaims"] == (2, 0)
    assert limit_of(services, "per-user.nodeclaims") == 2
    with pytest.raises(PreconditionFailed):
        set_quota(services, "per-user.nodeclaims", 5, 0)
    assert set_quota(services, "per-user.nodeclaims", 5, 1)["version"] == 2


@pytest.mark.parametrize(
    "name", ["pods", "nodeclaims.provider=", "nodeclaims.provider=A", "per-user.clusters", "per-user.", "nodeclaims/x"]
)
def test_names_that_cannot_be_one(world: World, name: str) -> None:
    with pytest.raises(NotFound):
        set_quota(world.services, name, 1, 0)


def counted(world: World) -> dict[str, int]:
    page = world.services.store.list(Counter, prefix="quota/", limit=100)
    return {one.id.removeprefix("quota/"): one.value for one in page.items}


def test_a_claim_counts_for_all_its_provider_and_its_user_and_goes_as_it_came(world: World) -> None:
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
    assert shown(world)["per-user.nodeclaims"] == (2, 2)
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
def test_each_limit_holds_and_its_refusal_has_the_published_words(
    world: World, quota: str, limit: int, text: str
) -> None:
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


def test_a_write_that_counts_for_nothing_is_no_refusal() -> None:
    for write in (Add("quota/clusters", 1, 20), Put(Counter("quota/nodeclaims"))):
        with pytest.raises(ValueError, match="no quota of claims"):
            quota_refusal([write], 0)


def test_allowed_types_are_all_until_they_are_set(world: World) -> None:
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


def test_two_writers_of_the_allowed_types_do_not_both_win(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    services = world.services
    commit = services.store.commit

    def first(*writes: object) -> None:
        monkeypatch.setattr(services.store, "commit", commit)
        set_allowed_types(services, ["other.*"], 0)
        commit(*writes)  # type: ignore[arg-type]

    monkeypatch.setattr(services.store, "commit", first)
    with pytest.raises(PreconditionFailed, match="someone else"):
        set_allowed_types(services, ["lab.*"], 0)
    assert allowed_types(services) == ("other.*",)


def test_a_counter_of_a_quota_may_stand_before_it_is_set(world: World) -> None:
    services = world.services
    services.store.commit(Create(Counter("quota/nodeclaims.provider=lab", 7)))
    assert set_quota(services, "nodeclaims.provider=lab", 5, 0)["used"] == 7
