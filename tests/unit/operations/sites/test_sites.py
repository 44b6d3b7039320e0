"""Sites: made within a quota, given credentials, deleted with their client and what waits for them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount, Quota, Site, SiteAnswer
from stockyard.domain.site_content import unpacked_reply
from stockyard.errors import (
    IllegalTransition,
    InUse,
    NotFound,
    QuotaExceeded,
    UnexpectedBehavior,
    VendorUnavailable,
)
from stockyard.operations.quotas.limits import view
from stockyard.operations.sites.sites import create_site, delete_site, find_site, renew_credentials
from stockyard.ports import Put, Replace
from tests.harness.worlds.site_world import Host, SiteWorld
from tests.unit.operations.conftest import World


def create(world: World, name: str = "room") -> Site:
    return create_site(world.services, name=name, description="", actor="user:ann", id=world.services.new_id("sit"))


def test_sites_count_for_a_quota_and_names_are_unique(world: World):
    world.services.store.commit(Put(Quota("sites", 2, "")))
    site = create(world)
    assert create_site(world.services, name="room", description="", actor="user:ann", id=site.id) == site
    assert find_site(world.services, "room") == find_site(world.services, site.id) == site
    with pytest.raises(IllegalTransition, match="a site called room"):
        create(world)
    create(world, "other")
    with pytest.raises(QuotaExceeded):
        create(world, "third")
    delete_site(world.services, world.secrets, site, "user:ann")
    assert view(world.services, "sites")["used"] == 1
    with pytest.raises(NotFound):
        find_site(world.services, "room")


def test_credentials_are_made_anew_each_time_and_kept_by_the_realm_alone(world: World):
    site = create(world)
    first, second = renew_credentials(world.services, site), renew_credentials(world.services, site)
    assert first.client_secret != second.client_secret
    assert world.identity.client_secret(site.client_id) == second.client_secret
    assert second.client_secret not in str([list(world.registry.table.items()), world.secrets.values])
    world.identity.faults.before("create_client", VendorUnavailable("down"))
    with pytest.raises(UnexpectedBehavior):
        renew_credentials(world.services, site)


def test_a_site_that_an_account_uses_stays(world: World):
    site = create(world)
    account = world.services.store.get(CloudAccount, "1")
    assert account is not None
    used = replace(account, attributes={**account.attributes, "via": "room"}, version=account.version + 1)
    world.services.store.commit(Replace(used))
    with pytest.raises(InUse, match="cloud account 1"):
        delete_site(world.services, world.secrets, site, "user:ann")


def test_a_deletion_that_is_cut_off_is_done_when_it_is_sent_again(world: World):
    for late in (False, True):
        site = create(world)
        renew_credentials(world.services, site)
        plan = world.identity.faults.after if late else world.identity.faults.before
        plan("delete_client", VendorUnavailable("down"))
        with pytest.raises(UnexpectedBehavior):
            delete_site(world.services, world.secrets, site, "user:ann")
        stays = find_site(world.services, site.id)
        assert stays.state == "Deleting"
        with pytest.raises(IllegalTransition):
            renew_credentials(world.services, stays)
        assert delete_site(world.services, world.secrets, stays, "user:ann").status == "succeeded"
        assert world.identity.clients == {}


def test_who_waits_for_a_deleted_site_is_told(world: World):
    site = create(world)
    waiting = SiteWorld(world.services, world.secrets, world.clock, site, Host()).write()
    delete_site(world.services, world.secrets, site, "user:ann")
    answer = world.services.store.get(SiteAnswer, waiting)
    assert answer is not None
    reply = unpacked_reply(world.secrets.unseal(f"acme/{waiting}/answer", answer.sealed))
    assert reply.failure == "the site was deleted"


class Died(BaseException):
    """The process ends here."""


class Dying:
    """A store that dies before, or after, a commit of that number."""

    def __init__(self, store: Any, number: int, *, late: bool) -> None:
        self._store, self._left, self._late = store, number, late

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, *writes: Any) -> None:
        self._left -= 1
        if not self._left and not self._late:
            raise Died
        self._store.commit(*writes)
        if not self._left:
            raise Died


def test_who_dies_at_any_write_of_a_creation_or_a_deletion_leaves_what_the_next_try_ends(world: World):
    cells = 0
    for late in (False, True):
        for number in range(1, 6):
            dying = replace(world.services, store=Dying(world.services.store, number, late=late))
            site_id = world.services.new_id("sit")
            site = None
            for services in (dying, world.services):
                with suppress(Died):
                    site = create_site(services, name="room", description="", actor="user:ann", id=site_id)
            assert site is not None
            renew_credentials(world.services, site)
            waiting = SiteWorld(world.services, world.secrets, world.clock, site, Host()).write()
            for services in (dying, world.services):
                present = world.services.store.get(Site, site_id)
                with suppress(Died):
                    _ = present and delete_site(services, world.secrets, present, "user:ann")
            assert world.services.store.get(Site, site_id) is None
            assert world.services.store.get(SiteAnswer, waiting) is not None
            assert (world.identity.clients, view(world.services, "sites")["used"]) == ({}, 0)
            cells += 2
    assert cells == 20
