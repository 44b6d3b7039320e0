"""Number of profiles that a tenant may have, and the size of one of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stockyard.domain.profiles.records import ClusterProfile
from stockyard.domain.values.rights import ADMIN
from stockyard.errors import InvalidInput, QuotaExceeded
from stockyard.operations.profiles import profiles
from stockyard.operations.quotas.limits import set_quota, used
from stockyard.operations.services import Services
from tests.unit.operations.conftest import World

ANN = "user:ann"


def content(text: str = "hello") -> dict[str, Any]:
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: text\ndata:\n  text: {text}\n"
    manifests = [{"name": "text", "content": manifest, "url": None, "digest": None}]
    pack = {"layer": "addon", "name": "hello", "tag": "1.0", "namespace": None, "values": {}, "manifests": manifests}
    return {"variables": [], "packs": [pack]}


def make(services: Services, name: str, text: str = "hello") -> ClusterProfile:
    return profiles.create_profile(
        services,
        name=name,
        description="",
        cloud="any",
        version="1.0.0",
        content=content(text),
        actor=ANN,
        rights=ADMIN,
        id=services.new_id("cpr"),
    )


def test_a_quota_bounds_the_profiles_of_a_tenant(world: World) -> None:
    services = world.services
    set_quota(services, profiles.QUOTA, 2, 0)
    first = make(services, "first")
    make(services, "second")
    with pytest.raises(QuotaExceeded, match="2 cluster profiles"):
        make(services, "third")
    profiles.delete_profile(services, first.id, ANN)
    make(services, "third")
    assert used(services.store, f"quota/{profiles.QUOTA}") == 2


def test_the_versions_of_a_profile_are_bounded_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MAX_BYTES", 20_000)
    services, chance = world.services, random.Random(1)
    profile = make(services, "large", chance.randbytes(6_000).hex())
    assert 6_000 < profile.versions[0].size < 20_000

    def add(number: str, match: int) -> ClusterProfile:
        return profiles.add_version(
            services,
            profile.id,
            match,
            version=number,
            description=None,
            content=content(chance.randbytes(6_000).hex()),
            actor=ANN,
            rights=ADMIN,
            request_id="r",
        )

    changed = add("2.0.0", profile.version)
    assert sum(version.size for version in changed.versions) < profiles.MAX_BYTES
    with pytest.raises(InvalidInput) as raised:
        add("3.0.0", changed.version)
    assert [fault.pointer for fault in raised.value.errors] == ["/packs"]
