"""Whatever an inventory has, a document says and people do meanwhile: no head node and no node without its owner's word
is ever switched or ordered to be installed, and nothing is asked for that the head node does not document."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest

from local.bcm.inventory import device, group, uuid_of
from stockyard.errors import VendorError
from stockyard.providers.clouds.bcm.devices import Device
from stockyard.providers.clouds.bcm.marks import MAY_INSTALL
from tests.harness.bcm.hands import HostClaim, provider
from tests.harness.bcm.yard import WORD, HeadYard

INVENTORIES, FEW = 10_000, 80
CHILD_TYPES = ("PhysicalNode",) * 6 + (
    "HeadNode",
    "HeadNode",
    "CloudNode",
    "LiteNode",
    "EthernetSwitch",
    "headnode",
    "",
)
NOTES = (
    WORD,
    WORD,
    WORD,
    MAY_INSTALL,
    "",
    "ours",
    f"no-{MAY_INSTALL}",
    f"{MAY_INSTALL}-not",
    MAY_INSTALL.upper(),
    f"x\nstockyard: installation={MAY_INSTALL} tenant=acme",
    f"{WORD}\nstockyard: device=another",
    None,
    7,
)
ROLES: tuple[Any, ...] = (
    [],
    [],
    [],
    [{"childType": "ComputeRole"}],
    [{"childType": "HeadNodeRole"}],
    ["master"],
    "x",
    [3],
)
NAMES = ("node001", "node002", "node003", "node004", "master", "all", "*", "node00*", "", "switch01")
MODES = ("", "", "", "", "FULL", "NOSYNC", "SKIP", None)
FINALIZES = ("", "echo own", None)


class Inventory(HeadYard):
    """A head node that nobody has tidied, with people who change devices between two requests."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(names=())
        self.chance, self.restless, self.bad = chance, chance.random() < 0.5, list[str]()
        self.head_node.devices.clear()
        self.head_node.groups.clear()
        for number, name in enumerate((*NAMES[:5], "switch01", chance.choice(NAMES))):
            self.add(self._device(name, number))
        for name in ("cpu", "all", "gpu"):
            members = chance.sample(NAMES[:6], 3)
            self.head_node.groups.append(group(name, members))

    def _device(self, name: str, number: int) -> dict[str, Any]:
        pick = self.chance.choice
        changes: dict[str, Any] = {
            "childType": "HeadNode" if name == "master" and self.chance.random() < 0.8 else pick(CHILD_TYPES),
            "notes": pick(NOTES),
            "roles": pick(ROLES),
            "nextInstallMode": pick(MODES),
            "finalize": pick(FINALIZES),
        }
        if self.chance.random() < 0.1:
            changes["uuid"] = pick(("all", "", "*", uuid_of("device", "master")))
        return device(name, number, **changes)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Judge the request by the devices of this moment, then answer it."""
        body = json.loads(request.content) if request.content else {}
        call = body.get("call")
        # Between the last look and what follows it is nothing that anybody could see.
        if self.restless and call not in ("updateDevice", "powerOperation") and self.chance.random() < 0.15:
            self._somebody()
        if call == "powerOperation":
            (wish,) = body["args"]
            self.bad += [f"{wish['operation']} of {uuid}" for uuid in wish["devices"] if not self._may(uuid)]
        if call == "updateDevice":
            (entity,) = body["args"]
            old = self.head_node.devices.get(entity["uuid"], {})
            is_new_order = entity["nextInstallMode"] == "FULL" and old.get("nextInstallMode") != "FULL"
            if is_new_order and not self._may(entity["uuid"]):
                self.bad.append(f"an installation of {entity['hostname']} is ordered")
        return super().answer(request)

    def _may(self, uuid: str) -> bool:
        entity = self.head_node.devices.get(uuid, {})
        own = str(entity.get("notes") or "").split("\nstockyard:")[0]
        words = own.replace(",", " ").split()
        return entity.get("childType") == "PhysicalNode" and entity.get("roles") in ROLES[:4] and MAY_INSTALL in words

    def _somebody(self) -> None:
        uuid = self.chance.choice(list(self.head_node.devices))
        field, values = self.chance.choice(
            (("notes", NOTES[:-1]), ("childType", CHILD_TYPES), ("nextInstallMode", MODES), ("roles", ROLES))
        )
        value: Any = self.chance.choice(values)
        if field == "notes" and self.chance.random() < 0.5:
            value = str(self.head_node.devices[uuid]["notes"]).replace(MAY_INSTALL, "")
        self.head_node.write(uuid, {field: value})


def document(chance: random.Random) -> Any:
    """A provider of a few types, as anybody may write them."""
    types = [
        {
            "name": f"t{number}",
            "nodes": chance.sample(NAMES, chance.randint(0, 4)),
            "nodeGroups": chance.sample(("cpu", "gpu", "all", "*"), chance.randint(0, 2)),
            "properties": {"stockyard.dev/power-off-when-free": chance.choice(("true", "false"))},
        }
        for number in range(chance.randint(1, 2))
    ]
    return provider(*types)


def run(seed: int) -> tuple[Inventory, int]:
    """One inventory, and claims that live in it."""
    chance = random.Random(seed)
    yard, leases = Inventory(chance), dict[str, str]()
    spec, launched = document(chance), 0
    for number in range(chance.randint(1, 2)):
        claim = HostClaim(yard, spec, number, leases)
        claim.launch(24)
        launched += claim.host() is not None
        if chance.random() < 0.5:
            claim.run(lambda work: claim.source.power(work, chance.choice(("On", "Off", "Reboot"))), 4)  # noqa: B023
        claim.terminate(24)
    for thing in yard.cloud().tagged(yard.account, "inst", "acme", ()):
        with suppress(VendorError):
            yard.cloud().discard(yard.account, thing, "acme")
    return yard, launched


@pytest.mark.timeout(3_600)
def test_no_head_node_and_no_unmarked_node_is_switched_or_installed(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    count = INVENTORIES if soaking else FEW
    launched = switched = 0
    faults: list[str] = []
    for number in range(count):
        yard, hosts = run(seed * 1_000_000 + number)
        launched += hosts
        switched += len(yard.head_node.power_calls)
        faults += [f"{number}: {text}" for text in (*yard.bad, *yard.head_node.outside)]
    figures = {"inventories": count, "hosts_taken": launched, "power_calls": switched, "bad": len(faults)}
    record_property("figure:bcm_inventories", figures)
    assert not faults, f"{len(faults)}: " + "\n".join(faults[:20])
    assert launched > count / 10, "else nothing was tried"


@pytest.mark.parametrize("rule", ["is_node", "may_install"])
def test_the_judge_sees_a_rule_that_is_missing(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, rule, True)
    assert any(run(number)[0].bad for number in range(40))
