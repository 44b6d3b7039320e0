"""A machine that did not come up: its console is told, and it is kept for as long as somebody asked for."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.records import Cluster, Fact, Operation
from stockyard.errors import (
    IllegalTransition,
    PermissionDenied,
    VendorError,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.creation.create import create_cluster, plan_creation
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.console import MOST_CHARACTERS
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.run_logs import lines_after
from tests.harness.sweeping import Reaper
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
TOKEN = "abcdef.0123456789abcdef"


@pytest.fixture
def consoles(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The machines whose console was read. It shows a token."""
    consoles: list[str] = []

    def console(work: Any) -> str:
        (line,) = work.ledger.lines("control_plane")
        consoles.append(line.vendor_id)
        return "x\n" * MOST_CHARACTERS + f"\x1b[31mkubeadm join --token {TOKEN}\x1b[0m\nno container runtime\n"

    monkeypatch.setattr(world.provider, "console", console, raising=False)
    return consoles


def failed(world: World, keep_failed: int = 0) -> Cluster:
    """A cluster whose control plane never reported."""
    cluster, _ = create_cluster(world.services, world.new_cluster(keep_failed=keep_failed), "ann")
    assert world.drive(cluster, "provision_cluster", report=False) == "not_deployed"
    return world.cluster(cluster)


def error_of(world: World, cluster: Cluster) -> Any:
    operation = world.services.store.get(Operation, cluster.operation_id or "")
    assert operation is not None
    return operation.error


def machines(world: World) -> list[str]:
    return [name for name, phase in world.provider.things.items() if phase == "control_plane"]


def sweep(world: World) -> list[str]:
    done: list[str] = Reaper(world.registry, world.clock, lambda _: world.services).run()["done"]
    return done


def test_console_is_told_once_and_without_secrets(world: World, consoles: list[str]) -> None:
    cluster = failed(world)
    console = error_of(world, cluster).console
    assert console.endswith("x\nkubeadm join --token (hidden)\nno container runtime")
    assert len(console) <= MOST_CHARACTERS
    assert TOKEN not in console
    assert consoles == [f"i-{cluster.id}"]
    assert machines(world) == []


def operation_of(world: World, cluster: Cluster) -> Operation:
    operation = world.services.store.get(Operation, cluster.operation_id or "")
    assert operation is not None
    return operation


def test_whole_console_is_the_log_of_a_run(world: World, consoles: list[str]) -> None:
    operation = operation_of(world, failed(world))
    [run] = operation.runs
    assert (run.name, run.phase, run.error) == ("console", "report", None)
    assert run.ended_at is not None
    lines, _, _ = lines_after(world.services, operation, {}, 10_000)
    assert len(lines) == MOST_CHARACTERS + 2 * len(consoles)
    assert [line.text for line in lines[-2:]] == ["kubeadm join --token (hidden)", "no container runtime"]


@pytest.mark.parametrize("error", [VendorUnavailable, VendorTimeout, PermissionDenied, VendorThrottled])
def test_console_that_cannot_be_kept_holds_nothing_up(
    world: World, consoles: list[str], monkeypatch: pytest.MonkeyPatch, error: type[VendorError]
) -> None:
    def refuse(*_: object) -> None:
        raise error("no bucket")

    monkeypatch.setattr(type(world.services.objects), "put", refuse)
    operation = operation_of(world, failed(world))
    assert consoles
    assert operation.error is not None
    assert operation.error.console.endswith("no container runtime")
    [run] = operation.runs
    assert (run.ended_at is None, run.error) == (False, f"The output could not be kept ({error.__name__}).")


def test_console_that_cannot_be_read_holds_nothing_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def console(_: Any) -> str:
        raise PermissionDenied("no")

    monkeypatch.setattr(world.provider, "console", console, raising=False)
    assert error_of(world, failed(world)).console == "The console could not be read (PermissionDenied)."
    assert machines(world) == []


def test_failure_without_a_machine_asks_for_no_console(world: World, consoles: list[str]) -> None:
    world.provider.faults["network"] = [VendorRefused("no")]
    cluster, _ = create_cluster(world.services, world.new_cluster(keep_failed=60), "ann")
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    assert (consoles, world.cluster(cluster).kept_until) == ([], None)
    assert world.provider.things == {}, "only a machine is kept"


def test_console_is_of_the_attempt_and_goes_with_the_cluster(world: World, consoles: list[str]) -> None:
    cluster = failed(world)
    world.provider.faults["deploy"] = []
    world.provider.faults["control_plane"] = [VendorRefused("none")]
    again = resume_cluster(world.services, cluster.id, "ann")
    assert world.drive(again, "provision_cluster") == "not_deployed"
    assert len(consoles) == 2
    world.drive(delete_cluster(world.services, cluster.id, "ann"), "delete_cluster")
    assert world.services.store.get(Fact, f"{cluster.id}/console") is None


def test_kept_machine_stays_until_its_time_is_over(world: World, consoles: list[str]) -> None:
    cluster = failed(world, keep_failed=90)
    assert cluster.kept_until is not None
    assert machines(world) == [f"i-{cluster.id}"]
    hint = error_of(world, cluster).hint
    assert f"Kept until {cluster.kept_until}, and billed meanwhile: instance i-{cluster.id}" in hint
    world.clock.advance(89 * 60)
    sweep(world)
    assert machines(world) == [f"i-{cluster.id}"]
    world.clock.advance(61)
    assert f"removed {cluster.id}" in sweep(world)
    assert machines(world) == []
    assert lines_of(world.services, cluster.id, "control_plane") == []
    current = world.cluster(cluster)
    assert (current.status, current.kept_until) == ("failed", None)
    assert f"removed {cluster.id}" not in sweep(world)
    assert world.drive(resume_cluster(world.services, cluster.id, "ann"), "provision_cluster") == "ready"


def test_resume_replaces_a_kept_machine(world: World, consoles: list[str]) -> None:
    cluster = failed(world, keep_failed=1440)
    resumed = resume_cluster(world.services, cluster.id, "ann")
    machine_counts: list[int] = []
    ensure = world.provider.ensure

    def counted(phase: str, work: Any) -> Any:
        if phase == "control_plane":
            machine_counts.append(len(machines(world)))
        return ensure(phase, work)

    world.provider.ensure = counted
    assert world.drive(resumed, "provision_cluster") == "ready"
    assert machine_counts == [0], "another machine was made beside the kept one"
    assert world.cluster(cluster).kept_until is None
    assert len(machines(world)) == 1


def test_resume_waits_for_the_sweep_that_removes_the_machine(world: World, consoles: list[str]) -> None:
    cluster = failed(world, keep_failed=10)
    world.clock.advance(9 * 60 + 30)
    with pytest.raises(IllegalTransition, match="being removed"):
        resume_cluster(world.services, cluster.id, "ann")
    world.provider.faults["remove control_plane"] = [VendorRefused("not now")]
    world.clock.advance(61)
    sweep(world)
    assert machines(world)
    sweep(world)
    assert resume_cluster(world.services, cluster.id, "ann").status == "preparing"


def test_deletion_removes_a_kept_machine(world: World, consoles: list[str]) -> None:
    cluster = failed(world, keep_failed=60)
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert world.provider.things == {}
    world.clock.advance(3601)
    assert sweep(world) == []


def test_sweep_that_has_lost_trust_removes_nothing(world: World, consoles: list[str]) -> None:
    cluster = failed(world, keep_failed=1)
    sweep(world)
    world.clock.advance(2 * 3600)
    assert f"removed {cluster.id}" not in sweep(world)
    assert machines(world)


def test_plan_says_what_keeping_costs(world: World) -> None:
    plan = plan_creation(world.services, world.new_cluster(keep_failed=120))
    (warning,) = [entry for entry in plan["warnings"] if entry["pointer"] == "/keep_failed"]
    assert f"at most {2 * plan['price']['hour']:.2f} USD" in warning["detail"]
    assert plan_creation(world.services, world.new_cluster())["warnings"] == []


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def test_machine_of_a_claim_is_kept_and_then_removed(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    claim = nodes.claim("one", keep_failed=30)
    nodes.schedule()
    nodes.errors["initialize"] = [VendorRefused("no")]
    assert nodes.relay() == ["not_provisioned"]
    failed_claim = nodes.now(claim)
    assert (failed_claim.phase, failed_claim.kept_until is not None) == ("Failed", True)
    assert (len(nodes.machines()), nodes.used(provider, "small")) == (1, 1)
    reaper = Reaper(nodes.registry, nodes.clock, lambda _: nodes.services)
    reaper.run()
    assert len(nodes.machines()) == 1
    nodes.hours(0.6)
    assert f"removed {claim.id}" in reaper.run()["done"]
    assert (nodes.machines(), nodes.used(provider, "small")) == ([], 0)
    assert nodes.now(claim).kept_until is None
    nodes.delete(nodes.now(claim))
    nodes.relay()
    assert nodes.nothing_left()


def test_deletion_of_a_claim_removes_a_kept_machine(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim("one", keep_failed=1440)
    nodes.schedule()
    nodes.errors["initialize"] = [VendorRefused("no")]
    nodes.relay()
    nodes.delete(nodes.now(claim))
    assert nodes.relay() == ["gone"]
    assert nodes.nothing_left()
