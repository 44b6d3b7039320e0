"""The calls of Elastic Load Balancing as the permission checks that AWS does."""

from __future__ import annotations

from collections.abc import Iterator

from local.aws.permissions import linked
from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call, request_tags, resource_tags, tag_keys, tags_of
from local.aws.permissions.policies import Ask

ASKED_FOR_THE_FIRST_BALANCER = (
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeInternetGateways",
)
"""What Elastic Load Balancing asks in the caller's name for the first load balancer of an account: its own role is
missing, or a target group has just made it."""
_NAMED = ("LoadBalancerArn", "TargetGroupArn")


def asks(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call on load balancers, target groups or listeners that there are."""
    parameters = call.parameters
    arns = [*(parameters.get("ResourceArns") or ()), *(parameters[name] for name in _NAMED if name in parameters)]
    for arn in arns:
        yield Ask(call.action, network(arn), {**resource_tags(account.balancing_tags(arn)), **tag_keys(parameters)})


def created(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call that makes one. A listener is made on its load balancer, the others have names."""
    operation, parameters = call.operation, call.parameters
    tags = tags_of(parameters.get("Tags"))
    if operation == "CreateListener":
        balancer = parameters["LoadBalancerArn"]
        on = network(balancer)
        yield Ask(call.action, on, {**request_tags(tags), **resource_tags(account.balancing_tags(balancer))})
        new = on.replace(":loadbalancer/", ":listener/") + "/*"
    else:
        kind = "targetgroup" if operation == "CreateTargetGroup" else "loadbalancer/net"
        new = call.arn(f"{kind}/{parameters['Name']}/*")
        yield Ask(call.action, new, request_tags(tags))
    if tags:
        context = {**request_tags(tags), "elasticloadbalancing:CreateAction": operation, "aws:TagKeys": tuple(tags)}
        yield Ask("elasticloadbalancing:AddTags", new, context)
    if operation == "CreateListener":
        return
    yield from linked.first_use(account, linked.BALANCING)
    if operation == "CreateLoadBalancer":
        if not account.has_balancers():
            for read in ASKED_FOR_THE_FIRST_BALANCER:
                yield Ask(read, "*")
        if parameters.get("SecurityGroups"):
            subnets = parameters.get("Subnets") or [m["SubnetId"] for m in parameters.get("SubnetMappings", ())]
            for vpc in sorted({account.vpc_of(subnet) for subnet in subnets}):
                arn = call.ec2("vpc", vpc, account.owner_of(vpc))
                yield Ask("ec2:GetSecurityGroupsForVpc", arn, resource_tags(account.tags(vpc)))


def everything(call: Call, _account: Account) -> Iterator[Ask]:
    """The check of a call that knows no resource."""
    yield Ask(call.action, "*")


def network(arn: str) -> str:
    """The ARN as AWS has it: moto names every load balancer as one of applications; ours are of networks."""
    return arn.replace("/app/", "/net/")
