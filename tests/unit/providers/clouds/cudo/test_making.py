"""Things in a project are made once, adopted, given up at once when they fail, and removed to the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from local.cudo.api import SimulatedCudo
from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.records import Cluster
from stockyard.domain.values.times import to_text
from stockyard.errors import InsufficientCapacity, VendorConflict, VendorError, VendorRefused
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.services import Services
from stockyard.ports import Create
from stockyard.providers.clouds.cudo import marks
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.making import TTL_SECONDS, Reconciler
from stockyard.providers.clouds.cudo.values import READY, NewVm, Rule
from tests.harness.worlds.memory import FixedClock

KEY, DALLAS, CLUSTER = "cudo-api-key-0123456789", "us-dallas-1", "clu_01KDVJXQ80000000000000000A"
MARKS = marks.marks("inst", "acme", CLUSTER, 1)
RULES = (Rule("6443", "0.0.0.0/0"),)
VM = NewVm(
    "demo-machine", DALLAS, "intel-broadwell", 4, 8, 50, "ubuntu-2404", "true", MARKS, ("demo-group",),
    network="demo-net", storage_disks=("demo-disk",), ttl_seconds=TTL_SECONDS,
)  # fmt: skip


class Yard:
    """A simulated Cudo and a ledger in memory."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.vendor = SimulatedCudo({KEY: "acme"}, self.clock.now)
        self.cudo = Cudo(KEY, "acme", transport=self.vendor.transport(), pause=lambda _seconds: None)
        store = MemoryStore(MemoryTable(), "acme")
        services = SimpleNamespace(store=store, clock=self.clock, now=lambda: to_text(self.clock.now()))
        self.services = cast(Services, services)
        moment = to_text(self.clock.now())
        self.cluster = Cluster(
            CLUSTER, "c", "d", "k8s", "cudo", 1, "c-0123456789ab", "preparing", {}, moment, moment, operation_id="op_1"
        )
        store.commit(Create(self.cluster))

    def reconciler(self) -> Reconciler:
        ledger = StoreLedger(self.services, Owner.of_cluster(self.cluster, "op_1", 1), "control_plane")
        return Reconciler(self.cudo, ledger, MARKS, self.clock.now())

    def until(self, step: Callable[[], Any]) -> Any:
        for _ in range(60):
            reached = step()
            if reached:
                return reached
            self.clock.advance(10)
        raise AssertionError("it does not end")

    def before_the_machine(self) -> None:
        self.reconciler().group("demo-group", DALLAS, RULES)
        self.until(lambda: self.reconciler().network("demo-net", DALLAS, "10.160.0.0/22"))
        self.until(lambda: self.reconciler().disk("demo-disk", DALLAS, 20))

    def everything(self) -> Any:
        self.before_the_machine()
        return self.until(lambda: self.reconciler().machine(VM))

    def remove(self) -> None:
        self.until(lambda: self.reconciler().unmake().done)

    def things(self) -> list[str]:
        project = self.vendor.projects["acme"]
        return [*project.machines, *project.disks, *project.networks, *project.groups]

    def states(self) -> list[str]:
        return sorted(f"{line.kind} {line.state}" for line in lines_of(self.services, CLUSTER))


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_everything_is_made_once_and_removed_to_the_last(yard: Yard) -> None:
    vm = yard.everything()
    assert (vm.state, bool(vm.public_address), [disk.id for disk in vm.disks]) == (READY, True, ["demo-disk"])
    calls = yard.vendor.calls.copy()
    yard.everything()
    for operation in ("CreateVM", "CreateStorageDisk", "CreateNetwork", "CreateSecurityGroup", "UpdateVMExpireTime"):
        assert yard.vendor.calls[operation] == calls[operation] == 1, operation
    assert yard.states() == ["disk made", "network made", "security_group made", "vm made"]
    yard.remove()
    assert (yard.things(), yard.states(), yard.vendor.outside) == ([], [], [])


def test_a_machine_that_nobody_comes_back_for_ends_by_itself_and_one_that_is_on_stays(yard: Yard) -> None:
    yard.before_the_machine()
    assert yard.reconciler().machine(VM) is None
    yard.clock.advance(TTL_SECONDS + 600)
    yard.until(lambda: yard.cudo.vm(VM.id) is None)
    again = yard.until(lambda: yard.reconciler().machine(VM))
    assert again.state == READY
    yard.clock.advance(30 * TTL_SECONDS)
    assert yard.reconciler().machine(VM) is not None


@pytest.mark.parametrize("operation", ["CreateVM", "CreateStorageDisk", "CreateNetwork"])
def test_what_fails_ends_the_phase_at_once_and_leaves_nothing(yard: Yard, operation: str) -> None:
    yard.vendor.plan.failing[operation] = 1
    began = yard.clock.now()
    with pytest.raises(VendorRefused, match="has failed"):
        yard.everything()
    assert yard.clock.now() - began < timedelta(minutes=2)
    yard.remove()
    assert (yard.things(), yard.states()) == ([], [])
    yard.everything()


@pytest.mark.parametrize("operation", ["CreateVM", "CreateStorageDisk", "CreateNetwork", "CreateSecurityGroup"])
def test_a_call_whose_answer_is_lost_is_found_again(yard: Yard, operation: str) -> None:
    answer, lose = yard.vendor.answer, [True]

    def losing(request: Any) -> Any:
        done = answer(request)
        called = {
            "CreateVM": "/vm",
            "CreateStorageDisk": "/disks",
            "CreateNetwork": "/networks",
            "CreateSecurityGroup": "/security-groups",
        }
        if lose and request.method == "POST" and request.url.path.endswith(called[operation]):
            lose.clear()
            raise httpx.ReadTimeout("lost")
        return done

    yard.vendor.answer = losing
    yard.cudo = Cudo(KEY, "acme", transport=yard.vendor.transport(), pause=lambda _seconds: None)
    with pytest.raises(VendorError):
        yard.everything()
    assert any(state.endswith("intended") for state in yard.states())
    yard.everything()
    assert yard.vendor.calls[operation] == 1
    yard.remove()
    assert (yard.things(), yard.states()) == ([], [])


def test_a_removal_waits_for_what_may_still_be_made(yard: Yard) -> None:
    yard.reconciler().ledger.intend("vm", VM.id)
    outcome = yard.reconciler().unmake()
    assert (outcome.done, outcome.message) == (False, f"vm {VM.id} may still be made")
    yard.clock.advance(61)
    assert yard.reconciler().unmake().done


def test_what_carries_our_id_and_is_not_ours_is_neither_taken_nor_removed(yard: Yard) -> None:
    foreign = replace(VM, metadata={"team": "b"}, security_groups=(), network="", storage_disks=(), ttl_seconds=None)
    yard.cudo.create_vm(foreign)
    yard.cudo.put_security_group("demo-group", DALLAS, "theirs", RULES)
    with pytest.raises(VendorConflict):
        yard.reconciler().machine(VM)
    with pytest.raises(VendorConflict):
        yard.reconciler().group("demo-group", DALLAS, RULES)
    yard.clock.advance(61)
    yard.remove()
    assert sorted(yard.things()) == ["demo-group", "demo-machine"]


def test_a_machine_that_was_in_use_and_is_gone_is_not_made_again(yard: Yard) -> None:
    yard.everything()
    yard.cudo.terminate_vm(VM.id)
    yard.clock.advance(60)
    with pytest.raises(VendorRefused, match="is gone") as refused:
        yard.reconciler().machine(VM)
    assert "Delete the cluster" in refused.value.hint


def test_a_data_center_without_room_says_so_and_nothing_is_on_the_ledger(yard: Yard) -> None:
    yard.before_the_machine()
    for offered in yard.vendor.stock:
        offered.free.vcpus = 2
    with pytest.raises(InsufficientCapacity):
        yard.reconciler().machine(VM)
    assert yard.states() == ["disk made", "network made", "security_group made"]


def test_a_network_of_another_range_is_not_taken(yard: Yard) -> None:
    yard.cudo.create_network("demo-net", DALLAS, "10.9.0.0/16")
    yard.clock.advance(60)
    with pytest.raises(VendorConflict):
        yard.reconciler().network("demo-net", DALLAS, "10.160.0.0/22")
