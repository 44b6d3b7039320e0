"""The crash matrix can fail: each deliberate defect of product or matrix is reported by the cell made for it."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import Any

import boto3
import pytest

from local.aws.accounts import REGION
from stockyard.adapters.telemetry import LoggedTelemetry
from stockyard.errors import PermissionDenied
from stockyard.operations.engine.ledger import StoreLedger
from stockyard.operations.sweep import records as sweep_records
from stockyard.providers.clouds.aws.resources.making import Reconciler
from tests.harness.crash import branches as crash_branches
from tests.harness.crash import cells as crash_cells
from tests.harness.crash.branches import judge_all
from tests.harness.crash.cells import RESUMED, Cell, Life, judge, live, matrix, tasks
from tests.harness.crash.ec2 import HIDDEN_SECONDS, ROLE, CrashEc2
from tests.harness.crash.faults import Call, Mode
from tests.harness.crash.world import CrashWorld
from tests.harness.worlds.memory import FixedClock

Clean = tuple[int, Life]
"""A seed, and the life without a fault of this seed."""
VPC = Call("provision:network", "ec2.CreateVpc", 1)


@pytest.fixture(scope="module")
def clean(world: CrashWorld, seed: int) -> Clean:
    return seed, live(world, "clean", seed)


def cell(clean: Clean, call: Call, mode: Mode, variant: int = 0) -> Cell:
    return Cell("clean", call, mode, clean[0], variant)


def wrong(world: CrashWorld, clean: Clean, call: Call, mode: Mode, variant: int = 0) -> list[str]:
    return judge(world, cell(clean, call, mode, variant), clean[1].things)


def test_a_fault_that_never_fires_fails_its_cell(world: CrashWorld, clean: Clean) -> None:
    assert wrong(world, clean, Call(VPC.point, VPC.name, 99), Mode.BEFORE) == ["the fault never fired"]


def test_a_resource_left_in_the_cloud_is_reported(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    unmade: Any = Reconciler.remove

    def forgetful(builder: Reconciler, line: Any) -> str | None:
        if line.kind == "role":
            builder.ledger.gone(line)
            return None
        answer: str | None = unmade(builder, line)
        return answer

    monkeypatch.setattr(Reconciler, "remove", forgetful)
    faults = wrong(world, clean, VPC, Mode.THROTTLED)
    # A cluster has a role for its machines and one for its controllers.
    assert [fault.startswith("left: role ") for fault in faults] == [True, True]


def test_a_resource_created_twice_is_reported(world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong(world, clean, VPC, Mode.AFTER) == []
    monkeypatch.setattr(Reconciler, "_adopted", lambda *_: None)
    # Nothing is left, because a deletion removes everything with the tags of a ledger line.
    assert wrong(world, clean, VPC, Mode.AFTER) == ["ready with {'vpc': 1} too much, {} too little"]


def test_a_line_that_stays_on_the_ledger_is_reported(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreLedger, "gone", lambda *_: None)
    monkeypatch.setattr(crash_cells, "ROUNDS", 2)
    assert wrong(world, clean, VPC, Mode.THROTTLED)[0].startswith("Hanging: the deletion does not end")


def test_a_refused_deletion_must_be_reported_unless_the_resource_is_gone(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hidden machine is terminated repeatedly. A refusal of the second call needs no report: the machine is gone."""
    monkeypatch.setattr(CrashEc2, "hidden", lambda _: HIDDEN_SECONDS)
    first, second = (Call("delete:control_plane", "ec2.TerminateInstances", number) for number in (1, 2))
    assert wrong(world, clean, first, Mode.REFUSED) == []
    assert wrong(world, clean, second, Mode.REFUSED) == []
    deleted: Any = Reconciler._deleted

    def silent(*arguments: Any) -> str | None:
        with suppress(PermissionDenied):
            answer: str | None = deleted(*arguments)
            return answer
        return None

    monkeypatch.setattr(Reconciler, "_deleted", silent)
    # Nothing waits for the group: a machine that stays keeps the volume, and its deletion would hang.
    group = Call("delete:security", "ec2.DeleteSecurityGroup", 1)
    assert "nobody was told of a refused deletion" in wrong(world, clean, group, Mode.REFUSED)


def test_a_refused_relay_must_be_reported_by_its_alarm(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Call("relay", "stepfunctions.StartExecution", 1)
    assert wrong(world, clean, start, Mode.REFUSED) == []
    monkeypatch.setattr(LoggedTelemetry, "measure", lambda *_, **__: None)
    assert wrong(world, clean, start, Mode.REFUSED)[0].startswith("Hanging: the deletion does not end")
    assert "nobody was told of what the relay was refused" in wrong(world, clean, start, Mode.REFUSED, RESUMED)


def test_a_lost_request_leaves_resources_without_the_sweep_of_leases(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Call("create", "identity.create_client", 1)
    assert wrong(world, clean, client, Mode.REFUSED) == []
    monkeypatch.setattr("stockyard.operations.clusters.creation.create.undo", lambda *_: False)
    assert wrong(world, clean, client, Mode.REFUSED) == []  # The sweep has undone it.
    monkeypatch.setattr(sweep_records, "undo", lambda *_: False)
    faults = wrong(world, clean, client, Mode.REFUSED)
    assert any("Hanging" in text or text.startswith("left: Name") for text in faults)


def test_a_new_phase_adds_cells_and_an_unreached_phase_is_reported(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads(world.documents["provision"])
    states = document["States"]
    states["again"] = {**states["account"], "Next": "again_done"}
    states["again_done"] = {**states["account_done"], "Default": "network"}
    states["again_done"]["Choices"] = [{**states["account_done"]["Choices"][0], "Next": "network"}]
    states["never"] = states["account"]
    states["account_done"]["Choices"][0]["Next"] = "again"
    monkeypatch.setitem(world.documents, "provision", json.dumps(document))
    life = live(world, "clean", clean[0])
    points = Counter(matrix_cell.call.point for matrix_cell in matrix(world.cloud.stories, {"clean": (clean[0], life)}))
    assert points["provision:again"] > 0
    assert tasks(world) - points.keys() >= {"provision:never"}


def test_a_seed_determines_the_life(world: CrashWorld, clean: Clean) -> None:
    seed, life = clean
    assert live(world, "clean", seed).calls == life.calls
    cluster = [name for _, name in world.states.executions]
    live(world, "clean", seed + 1)
    assert [name for _, name in world.states.executions] != cluster


def test_a_life_that_forks_at_its_fault_is_the_life_from_the_beginning(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both make the same calls until the end, whatever the fault and the people that answer it do."""

    def calls(_: CrashWorld, __: Cell, life: Life, ___: object) -> list[str]:
        return [*map(str, life.calls), *life.leftovers, str((life.ready, life.failed, life.resumed))]

    for module in (crash_cells, crash_branches):
        monkeypatch.setattr(module, "verdict", calls)
    faults = [
        (Call("create", "identity.create_client", 1), Mode.REFUSED),
        (VPC, Mode.AFTER),
        (VPC, Mode.REFUSED),
        (Call("delete:security", "ec2.DeleteSecurityGroup", 1), Mode.TIMEOUT),
    ]
    cells = [cell(clean, *fault, variant=number) for number, fault in enumerate(faults)]
    apart = {each: judge(world, each, clean[1].things) for each in cells}
    assert judge_all(world, cells, clean[1].things, processes=2) == apart
    assert len({tuple(answer) for answer in apart.values()}) == len(cells)


def test_long_waits_pass_on_the_worlds_clock_without_sleep(world: CrashWorld, clean: Clean) -> None:
    """``time.sleep`` fails in this world (conftest). The wait for a machine that never reports advances its clock."""
    report = Call("machine", "kms.GenerateDataKey", 1)
    refused_report = cell(clean, report, Mode.REFUSED, RESUMED)
    assert judge(world, refused_report, clean[1].things) == []
    assert (world.clock.now() - FixedClock().now()).total_seconds() > 1800


def test_new_resources_are_hidden_at_first(world: CrashWorld) -> None:
    world.reset(5)
    keys: Any = boto3.client("sts", region_name=REGION).assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]
    tenant = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], REGION)
    ec2: Any = tenant.client("ec2")
    hidden = 0
    for number in range(20):
        vpc = ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"]
        search = [{"Name": "vpc-id", "Values": [vpc]}]
        assert len(ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"]) == 1
        hidden += not ec2.describe_vpcs(Filters=search)["Vpcs"]
        world.clock.advance(HIDDEN_SECONDS)
        assert ec2.describe_vpcs(Filters=search)["Vpcs"]
    assert hidden > 15
