"""The crash matrix can fail: each break of the product or of the matrix itself is found by the cell made for it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import boto3
import pytest

from local import crash_cells
from local.crash_cells import RESUMED, Cell, Life, judge, live, matrix, tasks
from local.crash_world import HIDDEN_SECONDS, ROLE, CrashWorld
from local.faults import Call, Mode
from local.inprocess import REGION
from local.memory import FixedClock
from stockyard.operations import sweep_clusters
from stockyard.operations.ledger import StoreLedger
from stockyard.providers.clusters.ec2.building import Builder

Clean = tuple[int, Life]
"""A seed, and the life without a fault that it gives."""
VPC = Call("provision:network", "ec2.CreateVpc", 1)


@pytest.fixture(scope="module")
def clean(world: CrashWorld, seed: int) -> Clean:
    return seed, live(world, "clean", seed)


def cell(clean: Clean, call: Call, mode: Mode, variant: int = 0) -> Cell:
    return Cell("clean", call, mode, clean[0], variant)


def wrong(world: CrashWorld, clean: Clean, call: Call, mode: Mode, variant: int = 0) -> list[str]:
    return judge(world, cell(clean, call, mode, variant), clean[1].things)


def test_a_fault_that_never_fires_fails_its_cell(world: CrashWorld, clean: Clean) -> None:
    assert wrong(world, clean, Call(VPC.where, VPC.name, 99), Mode.BEFORE) == ["the fault never fired"]


def test_what_is_left_in_the_cloud_is_told(world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch) -> None:
    unmade: Any = Builder._unmade

    def forgetful(builder: Builder, line: Any) -> str:
        if line.kind == "role":
            builder.work.ledger.gone(line)
            return ""
        answer: str = unmade(builder, line)
        return answer

    monkeypatch.setattr(Builder, "_unmade", forgetful)
    found = wrong(world, clean, VPC, Mode.THROTTLED)
    assert len(found) == 1
    assert found[0].startswith("left: role ")


def test_what_is_made_twice_is_told(world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong(world, clean, VPC, Mode.AFTER) == []
    monkeypatch.setattr(Builder, "_adopted", lambda *_: None)
    # Nothing is left: a deletion removes all that carries a line's tags.
    assert wrong(world, clean, VPC, Mode.AFTER) == ["ready with {'vpc': 1} too much, {} too little"]


def test_a_line_that_stays_on_the_ledger_is_told(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreLedger, "gone", lambda *_: None)
    monkeypatch.setattr(crash_cells, "ROUNDS", 2)
    assert wrong(world, clean, VPC, Mode.THROTTLED)[0].startswith("Hanging: the deletion does not end")


def test_without_the_sweep_of_leases_a_lost_request_leaves_its_traces(
    world: CrashWorld, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Call("create", "identity.create_client", 1)
    assert wrong(world, clean, client, Mode.REFUSED) == []
    monkeypatch.setattr("stockyard.operations.create_cluster.undo", lambda *_: False)
    assert wrong(world, clean, client, Mode.REFUSED) == []  # the sweep has done it
    monkeypatch.setattr(sweep_clusters, "undo", lambda *_: False)
    found = wrong(world, clean, client, Mode.REFUSED)
    assert any("Hanging" in text or text.startswith("left: Name") for text in found)


def test_a_new_phase_adds_cells_and_one_that_is_never_reached_is_missed(
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
    places = Counter(made.call.where for made in matrix({"clean": (clean[0], life)}))
    assert places["provision:again"] > 0
    assert tasks(world) - places.keys() >= {"provision:never"}


def test_the_same_seed_is_the_same_life_and_another_one_is_not(world: CrashWorld, clean: Clean) -> None:
    seed, life = clean
    assert live(world, "clean", seed).calls == life.calls
    cluster = [name for _, name in world.states.executions]
    live(world, "clean", seed + 1)
    assert [name for _, name in world.states.executions] != cluster


def test_half_an_hour_passes_on_the_worlds_clock_and_nothing_sleeps(world: CrashWorld, clean: Clean) -> None:
    """``time.sleep`` fails in this world (conftest); a machine that never reports is waited for on its clock."""
    report = Call("machine", "secretsmanager.CreateSecret", 1)
    made = cell(clean, report, Mode.REFUSED, RESUMED)
    assert judge(world, made, clean[1].things) == []
    assert (world.clock.now() - FixedClock().now()).total_seconds() > 1800


def test_what_is_new_is_hidden_at_first(world: CrashWorld) -> None:
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
