"""A head node with an account: the simulated one in this process, direct or through a site with its allow-list."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx

from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from agent.stockyard_site import allowed
from agent.stockyard_site.site_api import GivenRequest
from agent.stockyard_site.target import Target
from local.bcm.head_node import HeadNode
from local.bcm.inventory import Entity, device, group, head
from stockyard.domain.records import CloudAccount
from stockyard.domain.site_content import packed_call, packed_reply, unpacked_call, unpacked_reply
from stockyard.domain.values.ids import account_secret
from stockyard.ports.sites import WAIT_SECONDS, SiteCall, SiteReply
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.bcm import calls
from stockyard.providers.clouds.bcm.access import Access
from stockyard.providers.clouds.bcm.cloud import HeadNodes
from stockyard.providers.clouds.bcm.marks import MAY_INSTALL
from stockyard.providers.sites import SiteTransport
from tests.harness.worlds.memory import FixedClock, MemorySecrets

TENANT, NUMBER, SITE, NAME = "acme", "4", "basement", "bcm-credentials"
"""``NUMBER`` is the account's."""
ENDPOINT, PUBLIC = "https://head.example.test:8081", "192.0.2.20"
WORD = f"dgx rack 1, {MAY_INSTALL}"
"""Notes of a node that its owner lets Stockyard install."""


def bcm_account(number: str = NUMBER, **attributes: Any) -> CloudAccount:
    """An account of the head node."""
    usual = {"endpoint": ENDPOINT, "fingerprint": "0" * 64, "client_certificate": "Y2VydA=="}
    return CloudAccount(
        number, "bcm", NAME, "", {**usual, **attributes}, "ext", "verified", "", "t", "t", secrets=("client_key",)
    )


class HeadYard:
    """The head node with itself, two marked nodes in the group ``cpu`` and one that is not marked. ``account`` is what
    the tenant has registered."""

    def __init__(
        self, clock: FixedClock | None = None, *, names: Sequence[str] = ("node001", "node002"), **settings: Any
    ):
        self.clock = clock or FixedClock()
        self.head_node = HeadNode(self.clock.now, boot=timedelta(seconds=20), install=timedelta(seconds=40), **settings)
        field = self.head_node.mode_field
        self.head_node.add([head(notes=WORD, mode_field=field)])
        for number, name in enumerate(names, 1):
            self.add(device(name, number, notes=WORD, finalize="#!/bin/sh\necho own\n", mode_field=field))
        self.add(device("private", 77, notes="my own", mode_field=field))
        self.head_node.groups.append(group("cpu", [*names, "master", "private"]))
        self.account = bcm_account()
        self.secrets = MemorySecrets()
        self.secrets.put(account_secret(TENANT, NUMBER, "client_key"), "a2V5")
        self.lacking: Callable[[], Set[str]] | None = None
        """Names of nodes that lose the owner's word while nobody has them; the others get it back."""
        self.allowed_lines: set[str] = set()
        """Lines of the connector's allow-list by which requests went through a site."""

    def add(self, *entities: Entity) -> None:
        """Put devices into the inventory."""
        self.head_node.add(entities)

    def through_site(self) -> None:
        """The account leads through a site from now on."""
        self.account = replace(self.account, attributes={"via": SITE}, secrets=())

    # --- the two ways -------------------------------------------------------------------------------------------------

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer of the head node to one request that shows the certificate."""
        if self.lacking is not None:
            for entity in self.head_node.devices.values():
                if entity["hostname"].startswith("node") and "\nstockyard:" not in entity["notes"]:
                    entity["notes"] = "" if entity["hostname"] in self.lacking() else WORD
        target = request.url.raw_path.decode()
        status, kind, content = self.head_node.answer(request.method, target, request.read(), "admin")
        return httpx.Response(status, headers={"content-type": kind}, content=content, request=request)

    def site_transport(self, tenant: str, site: str) -> SiteTransport:
        """Way to the head node through the only site that there is."""
        assert (tenant, site) == (TENANT, SITE)
        return SiteTransport(self, site)

    def ask(self, site: str, call: SiteCall, seconds: float = WAIT_SECONDS) -> SiteReply | None:
        """See ``ports.sites.SiteRequests.ask``: a connector with the allow-list of the template carries it out."""
        unpacked = unpacked_call(call.method, call.path, packed_call(call))
        lines = calls.allow_list()
        rules = allowed.read("\n".join(lines))
        target = Target(ENDPOINT, self._exchange, lambda: None, lambda: rules)
        answer = target.carry_out(
            GivenRequest(site, unpacked.method, unpacked.path, unpacked.headers, unpacked.body, seconds)
        )
        for line in lines:
            try:
                allowed.read(line).check(unpacked.method, unpacked.path, unpacked.headers, unpacked.body)
                self.allowed_lines.add(line)
            except allowed.NotAllowed:
                continue
        reply = SiteReply(answer.status, answer.headers, answer.body, answer.failure)
        return unpacked_reply(packed_reply(reply))

    def _exchange(self, request: HttpRequest) -> HttpResponse:
        wire = httpx.Request(request.method, request.url, headers=dict(request.headers), content=request.body)
        answer = self.answer(wire)
        return HttpResponse(answer.status_code, dict(answer.headers), answer.read())

    def access(self, transport: httpx.BaseTransport | None = None) -> Access:
        """The way of clouds and sources to the head node."""
        guard = Guard(resolve=lambda _host, _port: (PUBLIC,))
        return Access(lambda: self.secrets, guard, self.site_transport, transport or httpx.MockTransport(self.answer))

    def cloud(self) -> HeadNodes:
        """The cloud of such accounts."""
        return HeadNodes(self.access(), self.clock.now)

    # --- judges -------------------------------------------------------------------------------------------------------

    def devices(self) -> dict[str, str]:
        """Every device by host name, as text without its revision: what it was, and what it is."""
        self.head_node.work()
        return {
            entity["hostname"]: json.dumps({key: value for key, value in entity.items() if key != "revision"})
            for entity in self.head_node.devices.values()
        }

    def in_use(self) -> list[str]:
        """The uuids of the devices that carry a line of ours."""
        self.head_node.work()
        return [uuid for uuid, entity in self.head_node.devices.items() if "\nstockyard:" in entity["notes"]]

    def wipes(self) -> dict[str, int]:
        """Number of times that the disk of each device was made anew, by host name."""
        self.head_node.work()
        hardware = self.head_node.hardware
        return {entity["hostname"]: hardware[uuid].wipes for uuid, entity in self.head_node.devices.items()}

    def forbidden(self) -> list[str]:
        """Power calls that must never have been made, and requests that the head node's page does not have."""
        switched = [
            f"{call.operation} of {call.device['hostname']}"
            for call in self.head_node.power_calls
            if call.device["childType"] != "PhysicalNode"
            or MAY_INSTALL not in str(call.device["notes"]).replace("\n", " ").split()
        ]
        return [*switched, *self.head_node.outside]
