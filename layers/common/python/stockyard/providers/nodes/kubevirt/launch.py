"""Launch of a claim's machine: made by the first option that the namespace has room for, and waited for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from functools import partial
from typing import Any

from stockyard.domain.nodes.declared_types import block_of, declared_type
from stockyard.domain.nodes.os_images import PROPERTY
from stockyard.domain.nodes.properties import written
from stockyard.domain.records import NodeClaim, NodeProvider, PlacementOption, Resource
from stockyard.domain.values import times
from stockyard.errors import InsufficientCapacity, NodeCouldNotBeProvisioned, VendorQuotaExceeded
from stockyard.machines import node
from stockyard.machines.sources import PUBLIC, Sources
from stockyard.ports import Outcome, Store
from stockyard.ports.node_work import NodeWork
from stockyard.ports.nodes import BLOCKER
from stockyard.providers.clouds.kubernetes import reach
from stockyard.providers.clouds.kubernetes.os_images import os_image
from stockyard.providers.nodes.kubevirt import addresses, networks, properties, states
from stockyard.providers.nodes.kubevirt.objects import MachineObjects, Object
from stockyard.providers.nodes.kubevirt.templates import template_of
from stockyard.providers.nodes.kubevirt.virtual_machines import document

MACHINE = "virtual machine"
POLL_SECONDS, LATER_SECONDS = 5, 30
"""Between two looks at a machine that comes up: in its first minutes, and later, when an image is copied."""
_EARLY_SECONDS = 180
Refusals = list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class KubeVirtConfig:
    """Addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    api_url: str
    in_flight_seconds: int = 60
    sources: Sources = PUBLIC


@dataclass(frozen=True, slots=True)
class Launch:
    """One step of the launch of one claim's machine. ``store`` keeps the addresses that machines have."""

    objects: MachineObjects
    work: NodeWork
    config: KubeVirtConfig
    store: Store

    def run(self) -> Outcome:
        """Done when the machine runs. ``InsufficientCapacity`` names all that was refused. The host is read before
        anything is announced: who may not read makes nothing."""
        line = machine_line(self.work)
        there = self.objects.machine()
        if there is None and line is not None and line.state == "made":
            raise NodeCouldNotBeProvisioned(f"Virtual machine {line.key} was deleted while it came up.")
        if there is None:
            line, there = self._make()
        elif line is None:
            line = self.work.ledger.intend(MACHINE, self.objects.names.machine)
        if line.state != "made":
            self.work.ledger.made(line, line.key)
        return self._wait(line, there)

    def _make(self) -> tuple[Resource, Object]:
        refused: Refusals = []
        reasons: list[str] = []
        for option in options_of(self.work):
            line = self.work.ledger.intend(MACHINE, self.objects.names.machine, _detail(option))
            name = _bare(line)
            try:
                return line, self._apply(name)
            except VendorQuotaExceeded as error:
                self.objects.remove_first_boot()
                reasons.append(error.detail)
            except InsufficientCapacity as error:
                reasons.append(error.detail)
            refused += _refused_offerings(line)
            self.work.ledger.gone(line)
        raise InsufficientCapacity(
            f"There is no room for {', '.join(dict.fromkeys(name for name, _, _ in refused))}: {reasons[0]}",
            code="Quota",
            refused=refused,
            own=refused,
        )

    def _apply(self, name: str) -> Object:
        work, names = self.work, self.objects.names
        cluster = reach.check(work.provider, work.cluster)
        settings = settings_of(work.provider, work.claim, name, self.store)
        fault = next(properties.faults(settings), None)
        if fault is not None:
            raise NodeCouldNotBeProvisioned(f"{fault[0]}: {fault[1]}.")
        address = addresses.address_of(work, self.store, settings)
        guest = networks.guest_data(settings, address)
        entry = entry_of(work.provider, name)
        template = template_of(block_of(work.provider), entry)
        machine = document(template, names, entry, settings, has_network_data=guest is not None)
        script = node.first_boot_by_token(self.config, cluster, work.claim.id, work.machine_token).script()
        return self.objects.make(machine, user_data(script, settings.get(properties.USER_DATA)), guest)

    def _wait(self, line: Resource, machine: Object) -> Outcome:
        """Result for a machine that is there."""
        status = states.status_of(machine)
        if status.is_leaving:
            raise NodeCouldNotBeProvisioned(f"Virtual machine {line.key} was deleted while it came up.")
        if status.state == "running":
            return self._done(line)
        age = (self.work.now - (status.since or _intended(line))).total_seconds()
        text = f"Virtual machine {line.key} is {status}"
        if status.lacks_quota or (status.name in states.SCARCE and age >= states.GRACE_SECONDS):
            raise InsufficientCapacity(
                text, code=status.name, refused=_refused_offerings(line), own=_refused_offerings(line)
            )
        if status.name in states.FAILED and age >= states.GRACE_SECONDS:
            raise NodeCouldNotBeProvisioned(text)
        young = (self.work.now - _intended(line)).total_seconds() < _EARLY_SECONDS
        return Outcome(False, f"{text}.", POLL_SECONDS if young else LATER_SECONDS, facts={BLOCKER: text})

    def _done(self, line: Resource) -> Outcome:
        detail = line.detail or _detail(options_of(self.work)[0])
        facts = {"machine_id": line.key, **{name: str(detail[name]) for name in ("type", "capacity_type", "zone")}}
        return Outcome(True, f"Virtual machine {line.key} runs in {self.objects.names.namespace}.", facts=facts)


def options_of(work: NodeWork) -> tuple[PlacementOption, ...]:
    """The placement's options, in order. Raises ``NodeCouldNotBeProvisioned`` for a claim without any."""
    if work.claim.placement is None or not work.claim.placement.options:
        raise NodeCouldNotBeProvisioned("The claim is not placed.")
    return work.claim.placement.options


def machine_line(work: NodeWork) -> Resource | None:
    """The ledger line of the claim's machine; None when none is announced."""
    return next((line for line in work.ledger.lines() if line.kind == MACHINE), None)


def entry_of(provider: NodeProvider, name: str) -> Mapping[str, Any]:
    """Entry of a node type in the provider's document. Raises ``NodeCouldNotBeProvisioned`` for one that is gone."""
    entries = block_of(provider).get("nodeTypes") or ()
    entry: Mapping[str, Any] | None = next((each for each in entries if each["name"] == name), None)
    if entry is None:
        raise NodeCouldNotBeProvisioned(f"Node provider {provider.name} has no node type {name} any more.")
    return entry


def settings_of(provider: NodeProvider, claim: NodeClaim, name: str, store: Store) -> dict[str, str]:
    """Settings of a claim's node: the claim's over its type's over its provider's. Raises
    ``NodeCouldNotBeProvisioned`` for an image that cannot be used."""
    declared = declared_type(provider, name)
    settings = written(claim, provider.properties, declared.properties if declared is not None else {})
    try:
        return properties.with_image(settings, partial(os_image, store))
    except ValueError as error:
        raise NodeCouldNotBeProvisioned(f"{PROPERTY}: {error}.") from None


def user_data(script: str, own: str | None) -> str:
    """User data of a machine: our script, behind what the node type has of its own."""
    if not own:
        return script
    message = MIMEMultipart(boundary="stockyard-part-of-user-data")
    kind = "x-shellscript" if own.startswith("#!") else "cloud-config"
    for subtype, text in ((kind, own), ("x-shellscript", script)):
        message.attach(MIMEText(text, subtype, "us-ascii" if text.isascii() else "utf-8"))
    return message.as_string()


def template_fingerprint(provider: NodeProvider) -> str:
    """Mark of what machines of the provider are made from."""
    texts = json.dumps([provider.properties, block_of(provider)], sort_keys=True)
    return hashlib.sha256(texts.encode()).hexdigest()[:32]


def _detail(option: PlacementOption) -> dict[str, str]:
    zone = next(iter(option.zones), "*")
    return {"type": option.type, "capacity_type": option.capacity_type, "zone": zone}


def _bare(line: Resource) -> str:
    return str(line.detail["type"]).partition(".")[2]


def _refused_offerings(line: Resource) -> Refusals:
    """The way that a line stands for, as refusals name it."""
    detail = line.detail
    return [(_bare(line), str(detail["capacity_type"]), str(detail["zone"]))] if detail.get("type") else []


def _intended(line: Resource) -> datetime:
    """Moment when the machine was announced first."""
    return times.from_text(str(line.detail.get("since") or line.intended_at))
