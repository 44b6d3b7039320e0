"""The simulated head node: one endpoint for calls, a page that documents them, and strictness.

A call, a field or an argument that the page does not have is refused and noted in ``outside``. Public calls are in
``PUBLIC``; the names of those in ``OWN`` are this simulation's own, because nothing public says them: a client finds
them on the page, as on a real head node.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from local.bcm.hardware import Hardware
from local.bcm.inventory import Entity, category, rack, system_information

PUBLIC: Mapping[str, Mapping[str, int]] = {
    "cmdevice": {
        "getNodes": 0,
        "getDevices": 0,
        "getComputeNodes": 0,
        "getNode": 1,
        "getCategories": 0,
        "updateDevice": 1,
        "powerOperation": 1,
    },
    "cmpart": {"getRacks": 0},
}
"""Number of arguments of each public call, by service."""
OWN: Mapping[str, Mapping[str, int]] = {"cmdevice": {"getNodeGroups": 0, "getStatus": 1, "getSysInfo": 1}}
"""The same of what is not public."""
OPERATIONS = frozenset({"ON", "OFF", "RESET", "CYCLE"})
MODES = frozenset({None, "", "AUTO", "FULL", "NOSYNC", "SKIP", "MAIN"})
_POWER = {"baseType", "devices", "operation", "force", "wait"}
_FIXED = ("uuid", "baseType", "childType", "mac")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Refused(Exception):
    """An answer other than 200, with its status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class PowerCall:
    """One device of a power operation: the operation, and the device as it was at that moment."""

    operation: str
    device: Mapping[str, Any]


@dataclass
class HeadNode:
    """``now`` gives the time. Devices are kept by uuid. ``people`` are the names in client certificates that it knows.

    ``args_field`` and ``mode_field`` are names that releases disagree on; without ``tells`` the page has public calls
    alone.
    """

    now: Callable[[], datetime]
    boot: timedelta = timedelta(seconds=60)
    install: timedelta = timedelta(seconds=600)
    people: frozenset[str] = frozenset({"admin"})
    args_field: str = "args"
    mode_field: str = "nextInstallMode"
    tells: bool = True
    devices: dict[str, Entity] = field(default_factory=dict)
    hardware: dict[str, Hardware] = field(default_factory=dict)
    information: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: list[Entity] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Every call that was understood, by service and name."""
    outside: list[str] = field(default_factory=list)
    """What is not documented, and was asked for all the same."""
    power_calls: list[PowerCall] = field(default_factory=list)
    unplugged: set[str] = field(default_factory=set)
    """The uuids of devices whose power cannot be switched."""

    def add(self, entities: Iterable[Entity], *, on: bool = True, **hardware: int) -> None:
        """Put devices into the inventory."""
        for entity in entities:
            self.devices[entity["uuid"]] = copy.deepcopy(entity)
            self.hardware[entity["uuid"]] = Hardware(self.boot, self.install, on)
            self.information[entity["uuid"]] = system_information(**hardware)

    def named(self, hostname: str) -> Entity:
        """The device of that name, as it is now."""
        self.work()
        return next(entity for entity in self.devices.values() if entity["hostname"] == hostname)

    def work(self) -> None:
        """Let the hardware go on to now."""
        moment = self.now()
        for uuid, machine in self.hardware.items():
            entity = self.devices.get(uuid)
            if entity is None:
                continue
            if machine.installer_begins(moment):
                machine.begin(entity[self.mode_field] or entity["installMode"])
                if entity[self.mode_field]:
                    self.write(uuid, {self.mode_field: ""})  # it holds for one boot
            if machine.installer_ends(moment):
                machine.end(self.devices[uuid]["finalize"] or "")

    def write(self, uuid: str, changes: Mapping[str, Any]) -> None:
        """Change a device, as the head node itself or a person does."""
        entity = self.devices[uuid]
        self.devices[uuid] = {**entity, **changes, "revision": entity["revision"] + 1, "modified": False}

    # --- requests -----------------------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, body: bytes, person: str | None) -> tuple[int, str, bytes]:
        """Status, content type and body for one request. ``person`` is the name in the client's certificate, None where
        it has none."""
        self.work()
        try:
            if person not in self.people:
                raise Refused(401, "no valid certificate or session")
            if (method, target) == ("GET", "/api"):
                return 200, "text/html", self.page().encode()
            if (method, target) != ("POST", "/json"):
                self.outside.append(f"{method} {target}")
                raise Refused(404, "there is no such page")
            value = self._call(body)
        except Refused as refused:
            text = json.dumps({"errormessage": str(refused)})
            return refused.status, "application/json", text.encode()
        return 200, "application/json", json.dumps(value).encode()

    def documented(self) -> Mapping[tuple[str, str], int]:
        """Number of arguments of each call on the page."""
        tables = (PUBLIC, OWN) if self.tells else (PUBLIC,)
        return {
            (service, name): count
            for table in tables
            for service, calls in table.items()
            for name, count in calls.items()
        }

    def page(self) -> str:
        """The head node's own documentation."""
        rows = "".join(
            f"<li><b>{service}</b>::{name}({', '.join(['value'] * count)})</li>"
            for (service, name), count in self.documented().items()
        )
        form = {"service": "cmdevice", "call": "getNode", self.args_field: ["node001"], "minify": True}
        return f"<html><h1>API</h1><pre>POST /json {json.dumps(form)}</pre><ul>{rows}</ul></html>"

    def _call(self, body: bytes) -> Any:
        try:
            request = json.loads(body)
        except ValueError:
            raise self._outside(400, "the body is no JSON") from None
        if not isinstance(request, dict):
            raise self._outside(400, "the body is no object")
        extra = set(request) - {"service", "call", self.args_field, "minify"}
        if extra:
            raise self._outside(400, f"unknown fields {sorted(extra)}")
        name, arguments = (request.get("service"), request.get("call")), request.get(self.args_field, [])
        count = self.documented().get(name) if all(isinstance(part, str) for part in name) else None  # type: ignore[arg-type]
        if count is None:
            raise self._outside(400, f"unknown call {name}")
        if not isinstance(arguments, list) or len(arguments) != count:
            raise self._outside(400, f"{name} takes {count} arguments")
        self.calls.append((str(name[0]), str(name[1])))
        return getattr(self, f"_{name[1]}")(*arguments)

    def _outside(self, status: int, text: str) -> Refused:
        self.outside.append(text)
        return Refused(status, text)

    def _getDevices(self) -> list[Entity]:  # noqa: N802 - the call's name
        return list(self.devices.values())

    def _getNodes(self) -> list[Entity]:  # noqa: N802
        return [entity for entity in self.devices.values() if str(entity["childType"]).endswith("Node")]

    def _getComputeNodes(self) -> list[Entity]:  # noqa: N802
        return [entity for entity in self.devices.values() if entity["childType"] == "PhysicalNode"]

    def _getNode(self, name: Any) -> Entity:  # noqa: N802
        entity = next((e for e in self.devices.values() if name in (e["uuid"], e["hostname"])), None)
        if entity is None:
            raise Refused(404, "no such node")
        return entity

    def _getCategories(self) -> list[Entity]:  # noqa: N802
        return [category()]

    def _getRacks(self) -> list[Entity]:  # noqa: N802
        return [rack()]

    def _getNodeGroups(self) -> list[Entity]:  # noqa: N802
        return self.groups

    def _getStatus(self, uuid: Any) -> Entity:  # noqa: N802
        entity = self._getNode(uuid)
        return {"baseType": "DeviceStatus", "device": uuid, "status": self.hardware[entity["uuid"]].status}

    def _getSysInfo(self, uuid: Any) -> Mapping[str, Any]:  # noqa: N802
        return self.information[self._getNode(uuid)["uuid"]]

    def _updateDevice(self, entity: Any) -> Mapping[str, Any]:  # noqa: N802
        old = self.devices.get(str(entity.get("uuid"))) if isinstance(entity, dict) else None
        if old is None:
            raise Refused(404, "no such node")
        if set(entity) != set(old):
            raise self._outside(400, f"fields differ: {sorted(set(entity) ^ set(old))}")
        if any(entity[name] != old[name] for name in _FIXED) or entity["modified"] is not True:
            raise self._outside(400, "an update changes no identity and is marked as modified")
        texts = (entity["notes"], entity["finalize"])
        if entity[self.mode_field] not in MODES or not all(isinstance(text, str | None) for text in texts):
            raise self._outside(400, "a field has a value that it cannot have")
        # Whoever comes last wins: there is no comparison of revisions.
        self.devices[old["uuid"]] = {**copy.deepcopy(entity), "revision": old["revision"] + 1, "modified": False}
        return {"success": True}

    def _powerOperation(self, body: Any) -> Mapping[str, Any]:  # noqa: N802
        if not isinstance(body, dict) or set(body) != _POWER or body["baseType"] != "PowerOperation":
            raise self._outside(400, "no power operation")
        devices, operation = body["devices"], body["operation"]
        is_plain = isinstance(body["force"], bool) and isinstance(body["wait"], bool)
        if operation not in OPERATIONS or not is_plain or not isinstance(devices, list) or not devices:
            raise self._outside(400, "no power operation")
        if not all(isinstance(each, str) and _UUID.fullmatch(each) for each in devices):
            raise self._outside(400, "devices are named by their uuids")
        results = [self._switch(str(operation), self._getNode(uuid)) for uuid in devices]
        return {"success": all(results), "errormessage": "" if all(results) else "power operation failed"}

    def _switch(self, operation: str, entity: Entity) -> bool:
        machine = self.hardware[entity["uuid"]]
        self.power_calls.append(PowerCall(operation, copy.deepcopy(entity)))
        if entity["uuid"] in self.unplugged or (operation == "RESET" and not machine.on):
            return False
        if operation == "OFF":
            machine.stop()
        elif operation != "ON" or not machine.on:
            machine.start(self.now())
        return True
