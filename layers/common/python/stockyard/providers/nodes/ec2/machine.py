"""A claim's machine: launched as an instant fleet of one, looked at, switched, ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

from stockyard import kubernetes_versions
from stockyard.domain.clusters import overlay
from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT
from stockyard.domain.nodes.properties import ROOT_DISK
from stockyard.domain.nodes.records import PASSED_OVER
from stockyard.domain.pools.bids import ABOVE_BID, Bid
from stockyard.domain.records import Resource
from stockyard.domain.values.states import DesiredPower, MachineState
from stockyard.domain.values.times import to_text
from stockyard.errors import (
    CapacityAwaited,
    NodeCouldNotBeProvisioned,
    NotYetVisible,
    PermissionDenied,
    VendorError,
    VendorNotFound,
)
from stockyard.machines import node
from stockyard.ports import Outcome
from stockyard.ports.node_work import Machine, NodeWork
from stockyard.providers.clouds.aws import console as ec2_console
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.catalog import offerings, volume_keys
from stockyard.providers.clouds.aws.catalog.images import GPU_DISK_GIB, has_gpu_image
from stockyard.providers.clouds.aws.catalog.reserved import DISK_GIB
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clouds.aws.resources.making import DesiredResource, Reconciler
from stockyard.providers.nodes.ec2 import environment, fleet, managed, members, node_class, templates
from stockyard.providers.nodes.ec2.configuration import Ec2NodesConfig, pool, setting, strategy
from stockyard.providers.nodes.ec2.fleet import LaunchedMachine
from stockyard.providers.nodes.ec2.overrides import bid_for, overrides, placement, types
from stockyard.providers.nodes.ec2.work import REBOOT

KEY = "machine"
PROFILE = "instanceProfile"
"""The setting of a provider that has machines with a role of the tenant's own."""
_STATES: dict[str, MachineState] = {
    "pending": "starting",
    "running": "running",
    "stopping": "stopped",
    "stopped": "stopped",
    "shutting-down": "gone",
    "terminated": "gone",
}
ASK_AGAIN = 300
"""Seconds until EC2 is asked again for spot that cost more than the bid: a price that is tracked may be an hour old."""
_END_SECONDS = 30
"""Seconds between looks at a machine that is being ended. It costs nothing by then, and each look does."""
_WAIT = 10
"""Seconds between looks at a machine that is being ended or switched."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One try to launch one claim's machine. ``architectures`` by instance type, as the catalogue has them."""

    reconciler: Reconciler
    work: NodeWork
    config: Ec2NodesConfig
    owner: tags.Owner
    """Of launch templates: the environment."""
    architectures: Mapping[str, str]
    on_demand: Mapping[str, float] = field(default_factory=dict)
    """USD an hour by instance type, where it is known."""
    launched: list[LaunchedMachine] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Why EC2 did not launch types, by their names, where the call of this try has told."""
    looks: dict[str, templates.Look] = field(default_factory=dict)
    """Looks for launch templates that this try has made ahead, by name."""

    def run(self) -> Outcome:
        """The machine, and what it has become. ``NodeCouldNotBeProvisioned`` when it was ended meanwhile."""
        line = self.reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
        detail = dict(line.detail) if line else self.choice()
        name = self.reconciler.name(self.work.claim.name)
        # A choice that was made before names its own template.
        beside = None if line else partial(self._look_ahead, str(detail["capacity_type"]))
        desired = DesiredResource(ec2_kinds.INSTANCE, KEY, name, self._create, detail=detail, beside=beside)
        return self.outcome(self.reconciler.want_by(desired, line).vendor_id)

    def _look_ahead(self, capacity_type: str) -> None:
        """Look for the launch template while the intent is written; the launch raises what the look has raised."""
        name = templates.first_name(self.owner, label(self.work, capacity_type))
        try:
            template = templates.find(self.reconciler.calls, name)
        except VendorError as error:
            self.looks[name] = partial(_raise, error)
        else:
            self.looks[name] = lambda: template

    def outcome(self, machine_id: str) -> Outcome:
        """State of the claim's machine. ``NodeCouldNotBeProvisioned`` when it was ended meanwhile."""
        facts = self._facts(machine_id)
        zone = facts["zone"] or "a zone that EC2 does not tell"
        return Outcome(True, f"{machine_id} ({facts['type']}) was launched in {zone}.", facts=facts)

    def choice(self) -> dict[str, Any]:
        """Choice that must not change from one try to the next, written with the intent: a repeated request must not
        differ.

        ``asked_at`` makes the client token of a request whose answer said that nothing was made another than the next
        one's: EC2 would only repeat its answer.
        """
        work = self.work
        capacity_type = placement(work.claim).options[0].capacity_type
        named = types(work.claim, work.provider, capacity_type)
        architectures = {name: self.architectures[name] for name in named if name in self.architectures}
        bid = Bid.of(work.claim.max_price) if capacity_type == SPOT else None
        limits = {name: bid.limit(self.on_demand.get(name)) for name in named} if bid is not None else {}
        return {
            **({"max_prices": ",".join(f"{name}={limit}" for name, limit in limits.items() if limit)} if bid else {}),
            **self._node_class().facts(),
            "asked_at": to_text(work.now),
            "capacity_type": capacity_type,
            "strategy": strategy(work.claim.properties, work.provider),
            "architectures": ",".join(f"{name}={architecture}" for name, architecture in architectures.items()),
        }

    def _node_class(self) -> node_class.NodeClass:
        """As the environment found it, or anew when the provider's document has changed since."""
        work = self.work
        outputs = work.environment.outputs if work.environment else {}
        if outputs.get("provider_generation") == str(work.provider.generation):
            return node_class.of_facts(outputs)
        if work.cluster is None:
            raise NodeCouldNotBeProvisioned("The claim names no cluster.")
        return environment.find(self.reconciler, work.provider, work.cluster)

    def _create(self, line: Resource, marks: dict[str, str]) -> str:
        template = self.template(line.detail)
        token = hashlib.sha256(f"{line.token}/{line.detail['asked_at']}".encode()).hexdigest()[:32]
        request = self.request(line.detail, template, token, marks)
        answer = self.ask(request, fresh=template.fresh)
        self.launched.extend(answer.machines)
        self.refused.update(answer.refused)
        return self.launched[0].machine_id

    def template(self, choice: Mapping[str, Any]) -> templates.Template:
        """The launch template for a choice, made when it is not there. A cluster that admits machines by their role is
        asked whether it does."""
        work, cluster = self.work, self.work.cluster
        if cluster is not None and managed.joins(cluster) and work.account and not setting(work.provider, PROFILE):
            role = managed.node_role(work.account, cluster, self.owner)
            managed.ensure_entry(self.reconciler.calls, self.owner, cluster, role, to_text(work.now))
        request = self._template(node_class.of_facts(choice), str(choice["capacity_type"]))
        return templates.ensure(self.reconciler.calls, request, self.looks)

    def request(
        self,
        choice: Mapping[str, Any],
        template: templates.Template,
        token: str,
        marks: Mapping[str, str],
        count: int = 1,
        first: str = "",
    ) -> fleet.Request:
        """Request to EC2 by a choice; ``first`` as in ``ways``. ``VendorRefused`` when there is no way."""
        entries = [entry.split("=") for entry in str(choice["architectures"]).split(",") if entry]
        capacity_type, strategy = str(choice["capacity_type"]), str(choice["strategy"]) or None
        there, work = node_class.of_facts(choice), self.work
        if work.claim.control_plane and work.cluster is not None:
            marks = {**marks, **members.marks(work.cluster)}
        possible = overrides(work.claim, work.provider, there, dict(entries), capacity_type, strategy, first)
        if "max_prices" in choice:
            possible = bid_for(possible, str(choice["max_prices"]))
        own_tags = managed.own_tags(work.cluster) if work.cluster is not None and managed.joins(work.cluster) else {}
        return fleet.Request(token, template.name, capacity_type, possible, marks, strategy, count, own_tags)

    def ask(self, request: fleet.Request, *, fresh: bool) -> fleet.Answer:
        """Call for the machines. ``NotYetVisible`` for what a ``fresh`` template explains."""
        try:
            return fleet.launch(self.reconciler.calls, request)
        except fleet.AboveBid as error:
            again_at = to_text(self.work.now + timedelta(seconds=ASK_AGAIN))
            raise CapacityAwaited(error.detail, reason=ABOVE_BID, again_at=again_at, code=error.code) from error
        except (VendorNotFound, PermissionDenied) as error:
            if fresh or error.code.startswith("InvalidLaunchTemplate"):
                # Neither the template nor its tags, which the permissions ask for, need be known everywhere yet; or
                # another worker makes it anew just now.
                raise NotYetVisible(error.detail, code=error.code) from error
            raise

    def _template(self, there: node_class.NodeClass, capacity_type: str) -> templates.TemplateRequest:
        work, cluster = self.work, self.work.cluster
        if work.claim.control_plane and cluster is not None:
            there = members.member_class(self.reconciler.calls, there, cluster, self.owner)
        return templates.TemplateRequest(
            owner=self.owner,
            label=label(work, capacity_type),
            provider=work.provider.name,
            spot=capacity_type == SPOT,
            node_class=there,
            user_data=self._user_data(there),
            since=to_text(work.now),
            key_pair=self._key_pair(),
            disk_gib=self._disk_gib(),
            volume_key=volume_keys.of_account(work.account, self.reconciler.calls.region),
            reads_tags=not managed.joins(cluster),
        )

    def _disk_gib(self) -> int:
        work = self.work
        named = int(work.claim.properties.get(ROOT_DISK, 0))
        if work.claim.control_plane or not _uses_gpu_image(work):
            return named or DISK_GIB
        return max(named, GPU_DISK_GIB)

    def _key_pair(self) -> str:
        """The key pair of the cluster, with which somebody can get into its machines; empty for none. One that somebody
        has deleted keeps no machine from being made."""
        cluster = self.work.cluster
        name = str(cluster.settings.get("key_pair") or "") if cluster is not None else ""
        return name if name and offerings.has_key_pair(self.reconciler.calls, name) else ""

    def _user_data(self, there: node_class.NodeClass) -> bytes:
        cluster = self.work.cluster
        if cluster is not None and self.work.claim.control_plane:
            return members.user_data(self.config, cluster, self.owner)
        if cluster is not None and managed.joins(cluster):
            return managed.user_data(cluster, self.work.claim, there, self.config.api_url)
        return node.first_boot(
            api_url=self.config.api_url,
            cluster_id=cluster.id if cluster else "",
            kubernetes_version=cluster.node_minor if cluster else kubernetes_versions.DEFAULT,
            cloud_provider="external" if cluster and cluster.settings.get("cloud_controllers") else "",
            overlay=bool(cluster and cluster.settings.get(overlay.SETTING)),
            sources=self.config.sources,
        ).cloud_config()

    def _facts(self, machine_id: str) -> dict[str, str]:
        names_node = managed.joins(self.work.cluster)
        if self.launched and not names_node:
            item, launched = None, self.launched[0]
            capacity_type = placement(self.work.claim).options[0].capacity_type
            kind, zone = launched.type, launched.zone
        else:
            item = described(self.reconciler, machine_id)
            if item is None or (names_node and not item.get("PrivateDnsName")):
                raise NotYetVisible(f"{machine_id} is not shown yet")
            if _STATES.get(item["State"]["Name"]) == "gone":
                raise NodeCouldNotBeProvisioned(f"{machine_id} was ended: {_why(item)}")
            kind, zone = str(item["InstanceType"]), str(item["Placement"]["AvailabilityZone"])
            capacity_type = SPOT if item.get("InstanceLifecycle") == "spot" else ON_DEMAND
        name = f"{self.work.provider.name}.{kind}"
        host = {"host_name": str(item["PrivateDnsName"])} if names_node and item is not None else {}
        reasons = self._passed_over(kind, capacity_type)
        return {"machine_id": machine_id, "type": name, "capacity_type": capacity_type, "zone": zone, **host, **reasons}

    def _passed_over(self, kind: str, capacity_type: str) -> dict[str, str]:
        """The fact of why types before this one in the placement's order were not launched, as far as EC2 says it."""
        work = self.work
        named = types(work.claim, work.provider, capacity_type)
        earlier = named[: named.index(kind)] if kind in named else []
        general = fleet.preference(capacity_type, strategy(work.claim.properties, work.provider))
        reasons = {name: self.refused.get(name) or general for name in earlier}
        reasons_by_type = {
            f"{work.provider.name}.{name}": reason for name, reason in reasons.items() if reason is not None
        }
        return {PASSED_OVER: json.dumps(reasons_by_type)} if reasons_by_type else {}


def _raise(error: VendorError) -> NoReturn:
    raise error


def label(work: NodeWork, capacity_type: str) -> str:
    """Name of the launch template of the claim's pool behind the cluster's name."""
    offered = setting(work.provider, "capacityTypes") or ()
    suffix = managed.suffix_of(work.claim) if managed.joins(work.cluster) else ""
    # Its disk is larger, so a pool with types of both kinds has two templates.
    kind = "-gpu" if _uses_gpu_image(work) else ""
    return templates.label_of(f"{pool(work.claim, work.provider)}{suffix}{kind}", capacity_type, offered)


def _uses_gpu_image(work: NodeWork) -> bool:
    """Whether the claim's machine starts from the image with NVIDIA's driver."""
    first = placement(work.claim).options[0].type_of(work.provider.name) or ""
    return has_gpu_image(first) and not setting(work.provider, "image")


def look(reconciler: Reconciler) -> Machine:
    """The machine as EC2 has it. What was just made and is not shown is ``starting``."""
    line = reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    if line is None or line.state != "made":
        return Machine("absent")
    item = described(reconciler, line.vendor_id)
    if item is None:
        return Machine("starting" if reconciler.recent(line.made_at) else "gone", line.vendor_id)
    return described_machine(line.vendor_id, item)


def described_machine(machine_id: str, item: Mapping[str, Any]) -> Machine:
    """The machine that EC2 describes so."""
    zone = str(item.get("Placement", {}).get("AvailabilityZone", ""))
    return Machine(_STATES.get(item["State"]["Name"], "starting"), machine_id, zone=zone)


def console(reconciler: Reconciler) -> str | None:
    """Output of the machine's console; None when there is no machine."""
    line = reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    return ec2_console.read(reconciler.calls, line.vendor_id) if line is not None and line.vendor_id else None


def power(reconciler: Reconciler, state: DesiredPower, operation: str) -> Outcome:
    """Start, stop or reboot it; not done until EC2 says so. An operation reboots once."""
    now = look(reconciler)
    if now.state in ("absent", "gone"):
        raise NodeCouldNotBeProvisioned("The claim has no machine.")
    machine = {"InstanceIds": [now.machine_id]}
    if state == "Reboot":
        line = reconciler.ledger.intend(REBOOT.name, operation)
        if line.state != "made":
            reconciler.calls.call("ec2", "reboot_instances", **machine)
            reconciler.ledger.made(line, now.machine_id)
        return Outcome(True, f"{now.machine_id} was rebooted.", facts={"power": "On"})
    exact = (described(reconciler, now.machine_id) or {"State": {"Name": "pending"}})["State"]["Name"]
    if exact == {"On": "running", "Off": "stopped"}[state]:
        return Outcome(True, f"{now.machine_id} is {state}.", facts={"power": state})
    if state == "On" and exact == "stopped":
        reconciler.calls.call("ec2", "start_instances", **machine)
    if state == "Off" and exact == "running":
        reconciler.calls.call("ec2", "stop_instances", **machine)
    return Outcome(False, f"{now.machine_id} is {exact}", wait_seconds=_WAIT)


def terminate(reconciler: Reconciler, work: NodeWork, owner: tags.Owner | None) -> Outcome:
    """End the machine; done when EC2 shows it as ended.

    A young machine may have come with a template that no search finds yet. ``owner``'s templates are found by a search
    when the environment goes, so the claim stays until its pool's one would be found.
    """
    line = reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    young = line is not None and line.state == "made" and reconciler.recent(line.made_at)
    if line is None or owner is None or not young:
        return replace(reconciler.unmake(), wait_seconds=_END_SECONDS)
    if templates.is_found(reconciler.calls, owner, label(work, str(line.detail["capacity_type"]))):
        return replace(reconciler.unmake(), wait_seconds=_END_SECONDS)
    if ec2_kinds.INSTANCE.state(reconciler.calls, line.vendor_id) in (State.PRESENT, State.PENDING):
        ec2_kinds.INSTANCE.delete(reconciler.calls, line.vendor_id)
    return Outcome(False, "Waiting until the launch template is shown.", wait_seconds=_WAIT)


def described(reconciler: Reconciler, machine_id: str) -> Mapping[str, Any] | None:
    """The machine as EC2 describes it; None when it does not show it."""
    with suppress(VendorNotFound):
        return ec2_kinds.INSTANCE.describe(reconciler.calls, machine_id)
    return None


def _why(item: Mapping[str, Any]) -> str:
    return str(item.get("StateReason", {}).get("Message") or "no reason given")
