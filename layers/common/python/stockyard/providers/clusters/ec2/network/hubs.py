"""Hubs of an overlay behind the load balancer of the API: each member of the control plane by a UDP port of its own.

All places are made with the balancer, since they cost nothing while nobody is behind them, and so that a member that
comes later finds its own. WireGuard answers nobody whose key it does not know, so everybody may ask.
"""

from __future__ import annotations

from functools import partial

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Resource
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import elb as elb_kinds
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.configuration import EVERYWHERE
from stockyard.providers.clusters.ec2.network.rules import udp_rule

KEY = "hub"
FIRST = 0
"""The place of the machine that the control plane begins with."""


def has_any(builder: Builder) -> bool:
    """Whether the cluster has an overlay."""
    return bool(builder.work.cluster.settings.get(overlay.SETTING))


def balancer_rules(builder: Builder) -> list[str]:
    """Rules of the balancer's group for hubs."""
    last = overlay.PORT + overlay.HUBS - 1
    return [udp_rule(f"{overlay.PORT}-{last}", EVERYWHERE)] if has_any(builder) else []


def member_rules(builder: Builder, balancer: str) -> list[str]:
    """Rules of the members' group for hubs, from the balancer's."""
    return [udp_rule(str(overlay.PORT), balancer)] if has_any(builder) and balancer else []


def ensure(builder: Builder, vpc: str, load_balancer: str, stem: str) -> None:
    """A target group and a listener for each place. ``stem`` begins the names of the groups."""
    if not has_any(builder):
        return
    listeners = builder.calls.pages("elbv2", "describe_listeners", "Listeners", LoadBalancerArn=load_balancer)
    ports = {listener.get("Port") for listener in listeners}
    for slot in range(overlay.HUBS):
        create = partial(_create, builder, vpc, f"{stem}{slot}")
        desired = DesiredResource(elb_kinds.TARGET_GROUP, f"{KEY}-{slot}", f"{stem}{slot}", create, identity=True)
        group = builder.want(desired).vendor_id
        if overlay.PORT + slot in ports:
            continue
        with accepting("DuplicateListener"):
            builder.calls.call(
                "elbv2",
                "create_listener",
                LoadBalancerArn=load_balancer,
                Protocol="UDP",
                Port=overlay.PORT + slot,
                DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
                Tags=tags.pairs(tags.of_tenant(builder.work.installation, builder.work.tenant)),
            )


def _create(builder: Builder, vpc: str, name: str, _line: Resource, marks: dict[str, str]) -> str:
    answer = builder.calls.call(
        "elbv2",
        "create_target_group",
        Name=name,
        Protocol="UDP",
        Port=overlay.PORT,
        VpcId=vpc,
        TargetType="instance",
        # A hub is a member whose API server answers.
        HealthCheckProtocol="HTTPS",
        HealthCheckPort="6443",
        HealthCheckPath="/readyz",
        HealthCheckIntervalSeconds=10,
        HealthCheckTimeoutSeconds=5,
        Tags=tags.pairs(marks),
    )
    return str(answer["TargetGroups"][0]["TargetGroupArn"])


def admit(builder: Builder, machine_id: str, slot: int | None = None) -> None:
    """Put a member behind the port of its place, and whoever was there before behind none. ``slot``: where the place is
    not known by the machine yet. Nothing for one that is no hub."""
    slot = builder.work.hubs.get(machine_id, slot)
    group = _group(builder, slot) if slot is not None and has_any(builder) else None
    if group is None:
        return
    builder.calls.call("elbv2", "register_targets", TargetGroupArn=group, Targets=[{"Id": machine_id}])
    health = builder.calls.call("elbv2", "describe_target_health", TargetGroupArn=group)
    for entry in health["TargetHealthDescriptions"]:
        other = str(entry["Target"]["Id"])
        if other != machine_id and entry["TargetHealth"]["State"] != "draining":
            _leave(builder, group, other)


def withdraw(builder: Builder, machine_id: str) -> None:
    """Take a member from behind its port. Nothing for one that is no hub."""
    slot = builder.work.hubs.get(machine_id)
    group = _group(builder, slot) if slot is not None else None
    if group is not None:
        _leave(builder, group, machine_id)


def _leave(builder: Builder, group: str, machine_id: str) -> None:
    with accepting("InvalidTarget"):
        builder.calls.call("elbv2", "deregister_targets", TargetGroupArn=group, Targets=[{"Id": machine_id}])


def _group(builder: Builder, slot: int) -> str | None:
    line = builder.ledger.find(elb_kinds.TARGET_GROUP.name, f"{KEY}-{slot}")
    return line.vendor_id if line is not None and line.state == "made" else None
