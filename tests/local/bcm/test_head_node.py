"""The simulated head node: strict about calls, fields and arguments, and its hardware boots as the manuals say."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from local.bcm.head_node import HeadNode
from local.bcm.inventory import device, group, head
from tests.harness.worlds.memory import FixedClock


class Yard:
    """A head node with two nodes and itself, and who asks it."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FixedClock()
        self.head_node = HeadNode(self.clock.now, **settings)
        self.head_node.add([head(), device("node001", 1), device("node002", 2)])
        self.head_node.groups.append(group("racked", ["node001", "node002"]))

    def send(self, body: Any, *, person: str | None = "admin", target: str = "/json") -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, _, answer = self.head_node.answer("POST", target, content, person)
        return status, json.loads(answer)

    def call(self, name: str, *arguments: Any) -> Any:
        status, answer = self.send({"service": "cmdevice", "call": name, "args": list(arguments)})
        assert status == 200, answer
        return answer

    def power(self, operation: str, *hostnames: str) -> Any:
        uuids = [self.head_node.named(name)["uuid"] for name in hostnames]
        wish = {
            "baseType": "PowerOperation", "devices": uuids, "operation": operation, "force": False, "wait": False,
        }  # fmt: skip
        return self.call("powerOperation", wish)


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        [],
        {"service": "cmdevice", "call": "getEverything"},
        {"service": "cmmain", "call": "getNodes"},
        {"service": "cmdevice", "call": ["getNodes"]},
        {"service": "cmdevice", "call": "getNodes", "args": ["all"]},
        {"service": "cmdevice", "call": "getNodes", "force": True},
        {"service": "cmdevice", "call": "getNode", "arg": ["node001"]},
        {"service": "cmdevice", "call": "powerOperation", "args": [{"devices": ["all"], "operation": "RESET"}]},
        {
            "service": "cmdevice",
            "call": "powerOperation",
            "args": [
                {"baseType": "PowerOperation", "devices": ["all"], "operation": "RESET", "force": True, "wait": True}
            ],
        },
    ],
)
def test_what_is_not_documented_is_refused_and_noted(body: Any) -> None:
    yard = Yard()
    status, answer = yard.send(body)
    assert (status, len(yard.head_node.outside), yard.head_node.power_calls) == (400, 1, [])
    assert answer["errormessage"]


def test_who_has_no_certificate_is_told_nothing() -> None:
    for person in (None, "somebody"):
        assert Yard().send({"service": "cmdevice", "call": "getNodes"}, person=person)[0] == 401


def test_an_update_is_a_whole_device_and_the_last_one_wins() -> None:
    yard = Yard()
    read = yard.call("getNode", "node001")
    for wrong in (
        {**read, "notes": "x"},
        {**read, "modified": True, "colour": "red"},
        {name: value for name, value in read.items() if name != "mac"} | {"modified": True},
        {**read, "modified": True, "hostname": "n", "childType": "HeadNode"},
        {**read, "modified": True, "nextInstallMode": "WIPE"},
    ):
        assert yard.send({"service": "cmdevice", "call": "updateDevice", "args": [wrong]})[0] == 400
    yard.call("updateDevice", {**read, "modified": True, "notes": "first"})
    yard.call("updateDevice", {**read, "modified": True, "notes": "second"})
    after = yard.call("getNode", read["uuid"])
    assert (after["notes"], after["revision"], after["modified"]) == ("second", 3, False)


def test_a_mode_holds_for_one_boot_and_a_full_one_wipes() -> None:
    yard = Yard()
    read = yard.call("getNode", "node001")
    hardware = yard.head_node.hardware[read["uuid"]]
    yard.call("updateDevice", {**read, "modified": True, "nextInstallMode": "FULL", "finalize": "echo one"})
    yard.power("RESET", "node001")
    yard.clock.advance(59)
    assert yard.call("getStatus", read["uuid"])["status"] == "BOOTING"
    assert yard.call("getNode", "node001")["nextInstallMode"] == "FULL"
    yard.clock.advance(1)
    assert yard.call("getNode", "node001")["nextInstallMode"] == ""
    assert yard.call("getStatus", read["uuid"])["status"] == "INSTALLING"
    assert (hardware.wipes, hardware.scripts) == (1, [])
    yard.clock.advance(600)
    assert yard.call("getStatus", read["uuid"])["status"] == "UP"
    assert hardware.scripts == ["echo one"]
    yard.power("RESET", "node001")
    yard.clock.advance(660)
    yard.head_node.work()
    assert (hardware.wipes, hardware.scripts) == (1, ["echo one", "echo one"]), "a synchronisation wipes nothing"


def test_a_machine_that_is_off_cannot_be_reset() -> None:
    yard = Yard()
    assert yard.power("OFF", "node001", "node002")["success"]
    assert not yard.power("RESET", "node001")["success"]
    assert yard.power("ON", "node001")["success"]
    assert [(call.operation, call.device["hostname"]) for call in yard.head_node.power_calls] == [
        ("OFF", "node001"), ("OFF", "node002"), ("RESET", "node001"), ("ON", "node001"),
    ]  # fmt: skip


def test_the_page_has_what_a_release_has() -> None:
    full, silent = Yard(boot=timedelta(0)), Yard(tells=False, args_field="arg")
    assert "getNodeGroups" in full.head_node.page()
    page = silent.head_node.page()
    assert ("getNodeGroups" in page, '"arg"' in page, "powerOperation" in page) == (False, True, True)
    assert silent.send({"service": "cmdevice", "call": "getStatus", "arg": ["x"]})[0] == 400
    assert silent.send({"service": "cmdevice", "call": "getNode", "arg": ["node009"]})[0] == 404
    for name, count in (("getDevices", 3), ("getNodes", 3), ("getComputeNodes", 2)):
        assert len(full.call(name)) == count
    assert full.call("getNodeGroups")[0]["nodes"] == [full.head_node.named(f"node00{n}")["uuid"] for n in (1, 2)]
    assert full.call("getCategories")[0]["name"] == "default"
    assert full.send({"service": "cmpart", "call": "getRacks"})[1][0]["name"] == "rack-1"
    assert full.call("getSysInfo", full.head_node.named("node001")["uuid"])["cores"] == 16
