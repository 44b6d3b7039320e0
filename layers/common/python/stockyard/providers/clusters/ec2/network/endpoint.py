"""The endpoint phase: a network load balancer before the API server, from the start, since its name never changes."""

from __future__ import annotations

from functools import partial
from typing import Any

from stockyard.domain.records import Resource
from stockyard.errors import NotYetVisible, VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import elb as elb_kinds
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.network import hubs, network, security
from stockyard.providers.clusters.ec2.network.security import API_PORT

_ZONES_BEFORE = 2
"""In how many zones the balancers of earlier releases stand."""


def short_name(builder: Builder, suffix: str) -> str:
    """At most 32 characters, as load balancing wants it: the prefix and the unique end of the client id."""
    return f"{builder.config.name_prefix[:14].strip('-')}-{builder.work.cluster.client_id[-12:]}-{suffix}"


def ensure(builder: Builder) -> Outcome:
    """Target group, load balancer and listener; the fact ``endpoint`` is the API server's URL."""
    net = network.of(builder)
    group = target_group(builder, net)
    name = short_name(builder, "api")
    own_group = security.group(builder, security.BALANCER)

    def create(_line: Resource, marks: dict[str, str]) -> str:
        answer = builder.calls.call(
            "elbv2",
            "create_load_balancer",
            Name=name,
            Type="network",
            # A VPC without a public subnet can only have an internal one.
            Scheme="internet-facing" if net.public else "internal",
            Subnets=list(net.balanced),
            **({"SecurityGroups": [own_group]} if own_group else {}),
            Tags=tags.pairs(marks),
        )
        return str(answer["LoadBalancers"][0]["LoadBalancerArn"])

    configure = partial(_configure, builder, group)
    detail = {"subnets": list(net.balanced)}
    desired = DesiredResource(elb_kinds.LOAD_BALANCER, "api", name, create, configure, detail=detail, identity=True)
    arn = builder.want(desired).vendor_id
    _spread(builder, arn, net)
    hubs.ensure(builder, net.vpc_id, arn, short_name(builder, hubs.KEY))
    waiting = network.without_leaving(builder)
    if waiting:
        return Outcome(False, waiting)
    balancers = builder.calls.call("elbv2", "describe_load_balancers", LoadBalancerArns=[arn])["LoadBalancers"]
    if not balancers:
        raise NotYetVisible(f"load balancer {name} is not shown yet")
    url = f"https://{balancers[0]['DNSName']}:{API_PORT}"
    return Outcome(True, url, facts={"endpoint": url})


def _spread(builder: Builder, balancer: str, net: network.Network) -> None:
    """Let it stand in the subnets of zones that the network has grown by: targets of other zones get no traffic."""
    line = builder.ledger.find(elb_kinds.LOAD_BALANCER.name, "api")
    # Of an earlier release, whose networks have not grown.
    if line is None or not line.detail.get("subnets"):
        subnets = list(net.balanced[:_ZONES_BEFORE])
    else:
        subnets = list(line.detail["subnets"])
    if line is not None and subnets != list(net.balanced):
        builder.calls.call("elbv2", "set_subnets", LoadBalancerArn=balancer, Subnets=list(net.balanced))
        builder.ledger.made(line, balancer, {**line.detail, "subnets": list(net.balanced)})


def target_group(builder: Builder, net: network.Network) -> str:
    """The ARN of the group that the control plane's machine is registered in."""
    name = short_name(builder, "tg")

    def create(_line: Resource, marks: dict[str, str]) -> str:
        answer = builder.calls.call(
            "elbv2",
            "create_target_group",
            Name=name,
            Protocol="TCP",
            Port=API_PORT,
            VpcId=net.vpc_id,
            TargetType="instance",
            # Of an API server that answers; its port may be open before etcd is. Who is not logged in may ask this.
            HealthCheckProtocol="HTTPS",
            HealthCheckPath="/readyz",
            HealthCheckIntervalSeconds=10,
            HealthCheckTimeoutSeconds=5,
            Tags=tags.pairs(marks),
        )
        return str(answer["TargetGroups"][0]["TargetGroupArn"])

    return builder.want(DesiredResource(elb_kinds.TARGET_GROUP, "api", name, create, identity=True)).vendor_id


def made_target_group(builder: Builder) -> str:
    """The target group on the ledger. Raises ``VendorRefused`` when the endpoint phase has not run."""
    line = builder.work.ledger.find(elb_kinds.TARGET_GROUP.name, "api")
    if line is None or line.state != "made":
        raise VendorRefused("the endpoint is not on the ledger", hint="Resume from the endpoint phase.")
    return line.vendor_id


def _configure(builder: Builder, group: str, balancer: str) -> None:
    # A member may be missing in a zone; the addresses of all zones must lead to one.
    cross: list[dict[str, Any]] = [{"Key": "load_balancing.cross_zone.enabled", "Value": "true"}]
    builder.calls.call("elbv2", "modify_load_balancer_attributes", LoadBalancerArn=balancer, Attributes=cross)
    listeners = builder.calls.pages("elbv2", "describe_listeners", "Listeners", LoadBalancerArn=balancer)
    if any(listener.get("Port") == API_PORT for listener in listeners):
        return
    with accepting("DuplicateListener"):
        builder.calls.call(
            "elbv2",
            "create_listener",
            LoadBalancerArn=balancer,
            Protocol="TCP",
            Port=API_PORT,
            DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
            Tags=tags.pairs(tags.of_tenant(builder.work.installation, builder.work.tenant)),
        )
