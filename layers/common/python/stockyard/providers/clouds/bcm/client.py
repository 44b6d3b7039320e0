"""The API of one head node: calls by JSON over HTTPS. Each is made once; whoever asks, asks again.

Devices are changed whole, after it was seen that they are still as they were read. ``power.switch`` alone switches
them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockyard.errors import VendorNotFound, VendorRefused, VendorTimeout, VendorUnavailable
from stockyard.providers.clouds.bcm.calls import (
    DEVICES,
    GROUPS,
    JSON,
    NODE,
    PAGE,
    POWER,
    SERVICE,
    STATUS,
    SYSTEM,
    UPDATE,
    Release,
)
from stockyard.providers.clouds.bcm.devices import UUID, Device
from stockyard.providers.clouds.bcm.errors import DeviceChanged, refused, unanswered
from stockyard.providers.clouds.bcm.trust import Trust

if TYPE_CHECKING:
    import httpx

    from stockyard.providers.addresses import Guard

CONNECT_SECONDS, READ_SECONDS, MOST_SECONDS = 3.0, 12.0, 15.0
"""Three addresses of a name, with a connection and a handshake each, stay below twenty seconds; so does an answer."""
MOST_BYTES = 30_000_000
PAGE_SECONDS = 3_600.0
"""How long a page is believed: a head node may be upgraded."""
OPERATIONS = frozenset({"ON", "OFF", "RESET"})
Entity = Mapping[str, Any]


class HeadNode:
    """``trust`` says how it is known; None where the ``transport`` knows whom it speaks to. ``guard`` stands before the
    network or the transport that replaces it. Errors are leaves of ``VendorError``."""

    def __init__(
        self,
        endpoint: str,
        trust: Trust | None,
        transport: httpx.BaseTransport | None = None,
        guard: Guard | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint, self._trust, self._transport, self._guard = endpoint, trust, transport, guard
        self._monotonic = monotonic
        self._client: httpx.Client | None = None
        self._release: tuple[float, Release] | None = None

    def close(self) -> None:
        """Close the connections. A later call opens others."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def page(self) -> str:
        """The page by which the head node documents its API."""
        return self._send("page", "GET", PAGE, None).decode(errors="replace")

    def release(self) -> Release:
        """Release of the API by the page, which is read once an hour."""
        if self._release is None or self._monotonic() - self._release[0] > PAGE_SECONDS:
            self._release = (self._monotonic(), Release.of_page(self.page()))
        return self._release[1]

    def devices(self) -> list[Device]:
        """Every device of the inventory, head nodes and switches among them."""
        return [Device(entity) for entity in _entities(DEVICES, self._call(DEVICES))]

    def device(self, uuid: str) -> Device | None:
        """The device as it is now; None where the inventory has none of that uuid."""
        try:
            entity = self._call(NODE, uuid)
        except VendorNotFound:
            return None
        device = Device(entity) if isinstance(entity, Mapping) else None
        if device is None or device.uuid != uuid.lower():
            raise VendorRefused(f"head node {NODE}: the answer is another device.", code="AnotherDevice")
        return device

    def groups(self) -> Mapping[str, Sequence[str]] | None:
        """The uuids of the members of each node group by its name; None where the head node does not tell."""
        name = self.release().optional.get(GROUPS)
        if name is None:
            return None
        groups = {str(each.get("name") or ""): each.get("nodes") for each in _entities(name, self._call(name))}
        return {
            group: [uuid.lower() for uuid in members if isinstance(uuid, str)]
            for group, members in groups.items()
            if group and isinstance(members, list)
        }

    def status(self, uuid: str) -> str | None:
        """Status of the device in capitals; None where the head node does not tell."""
        name = self.release().optional.get(STATUS)
        if name is None:
            return None
        answer = self._call(name, uuid)
        status = answer.get("status") if isinstance(answer, Mapping) else answer
        return status.strip().upper() if isinstance(status, str) and status.strip() else None

    def system(self, uuid: str) -> Entity | None:
        """Hardware of the device; None where the head node does not tell."""
        name = self.release().optional.get(SYSTEM)
        answer = self._call(name, uuid) if name is not None else None
        return answer if isinstance(answer, Mapping) else None

    def update(self, device: Device, changes: Mapping[str, Any]) -> None:
        """Change fields of the device that was read. Raises ``DeviceChanged`` where it is another one by now: what the
        head node would not notice. An answer that is lost may be of a change that was made."""
        now = self.device(device.uuid)
        if now is None or now.revision != device.revision or not now.is_like(device):
            raise DeviceChanged(f"Device {device.hostname} has changed meanwhile.", code="DeviceChanged")
        unknown = set(changes) - set(now.entity)
        if unknown:
            raise VendorRefused(f"Devices have no {', '.join(sorted(unknown))}.", code="UnknownField")
        answer = self._call(UPDATE, {**now.entity, **changes, "modified": True})
        _check_success(UPDATE, answer)

    def operate(self, uuid: str, operation: str) -> None:
        """Switch one device, without any look at it: for ``power.switch`` alone."""
        if operation not in OPERATIONS or not UUID.fullmatch(uuid):
            raise VendorRefused("a power operation is of one device, by its uuid", code="PowerOperation")
        body = {
            "baseType": "PowerOperation",
            "devices": [uuid],
            "operation": operation,
            "force": False,
            "wait": False,
        }
        _check_success(POWER, self._call(POWER, body))

    # --- the wire -----------------------------------------------------------------------------------------------------

    def _call(self, name: str, *arguments: Any) -> Any:
        body = {"service": SERVICE, "call": name, self.release().arguments: list(arguments)}
        content = self._send(name, "POST", JSON, json.dumps(body).encode())
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise VendorUnavailable(f"head node {name}: the answer is no JSON.", code="Answer") from None

    def _send(self, call: str, method: str, path: str, content: bytes | None) -> bytes:
        import httpx  # kept out of cold starts

        headers = {"Accept": "application/json, text/html"}
        headers |= {"Content-Type": "application/json"} if content is not None else {}
        began = self._monotonic()
        try:
            with self._connected().stream(method, path, headers=headers, content=content) as answer:
                parts: list[bytes] = []
                size = 0
                for part in answer.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > MOST_BYTES or self._monotonic() - began > MOST_SECONDS:
                        raise VendorTimeout(f"head node {call}: the answer does not end.", code="Answer")
        except (httpx.InvalidURL, UnicodeError):
            raise VendorRefused("the endpoint is no https URL", code="Endpoint") from None
        except httpx.HTTPError as error:
            raise unanswered(call, error) from None  # the chain would hold the request
        body = b"".join(parts)
        if answer.status_code != 200:
            raise refused(call, answer.status_code, body)
        return body

    def _connected(self) -> httpx.Client:
        import httpx

        if self._client is None:
            transport = self._transport
            if transport is None:
                verify = self._trust.context() if self._trust is not None else True
                transport = httpx.HTTPTransport(verify=verify, trust_env=False)
            if self._guard is not None:
                from stockyard.providers.guarded_transport import GuardedTransport

                transport = GuardedTransport(self._guard, transport)
            self._client = httpx.Client(
                base_url=self._endpoint,
                transport=transport,
                timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
                follow_redirects=False,
                trust_env=False,
            )
        return self._client


def _entities(call: str, answer: Any) -> list[Entity]:
    if not isinstance(answer, list) or not all(isinstance(entity, Mapping) for entity in answer):
        raise VendorUnavailable(f"head node {call}: the answer is no list of entities.", code="Answer")
    return answer


def _check_success(call: str, answer: Any) -> None:
    """``VendorRefused`` where the answer says that it failed. One that says nothing is taken for done, and what follows
    is read."""
    for part in answer if isinstance(answer, list) else [answer]:
        if part is False or (isinstance(part, Mapping) and part.get("success", True) is not True):
            raise VendorRefused(f"head node {call}: it says that it failed.", code="Failed")
