"""Rights of Stockyard in a tenant's account for clusters that kubeadm sets up alone: the load balancer of their API,
and roles of machines within the boundary. Snapshots of etcd's volume are in ``snapshot_statements``."""

from __future__ import annotations

from typing import Any

from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.policies.statements import (
    ArnScope,
    Statement,
    allow,
    both,
    in_request,
    on_thing,
    resolved,
)

CREATE_ELB = ("CreateLoadBalancer", "CreateTargetGroup")
CHANGE_ELB = (
    "CreateListener",
    "DeleteLoadBalancer",
    "DeleteTargetGroup",
    "DeregisterTargets",
    "ModifyLoadBalancerAttributes",
    "RegisterTargets",
    "SetSubnets",
)
BALANCING = "elasticloadbalancing.amazonaws.com"


def balancing(here: ArnScope, installation: str) -> list[Statement]:
    """Network load balancers with their listeners and target groups."""
    request_tagged, thing_tagged = in_request(installation), on_thing(installation)
    new = [here.arn("elasticloadbalancing", name) for name in ("loadbalancer/net/*", "targetgroup/*")]
    listener = here.arn("elasticloadbalancing", "listener/net/*")
    made_by = {"StringEquals": {"elasticloadbalancing:CreateAction": ["CreateListener", *CREATE_ELB]}}
    linked = here.arn("iam", f"role/aws-service-role/{BALANCING}/AWSServiceRoleForElasticLoadBalancing")
    return [
        # The first balancer of an account makes the service's own role in the caller's name.
        allow(
            "FirstBalancer",
            ["iam:CreateServiceLinkedRole"],
            [linked],
            {"StringEquals": {"iam:AWSServiceName": BALANCING}},
        ),
        allow("CreateBalancers", _elb(CREATE_ELB), new, request_tagged),
        allow("TagNewBalancers", ["elasticloadbalancing:AddTags"], [*new, listener], both(request_tagged, made_by)),
        allow("ChangeOurBalancers", _elb(CHANGE_ELB), new, thing_tagged),
    ]


def roles(here: ArnScope, installation: str, prefix: str, bound: str) -> list[Statement]:
    """Roles of machines, with policies of their own inside the boundary ``bound``."""
    role = here.arn("iam", f"role{iam_kinds.PATH}{prefix}-*-role")
    bounded: dict[str, Any] = {
        "StringEquals": {"iam:PermissionsBoundary": resolved(here.arn("iam", f"policy/{bound}"))}
    }
    return [
        allow("CreateBoundedRoles", ["iam:CreateRole"], [role], both(in_request(installation), bounded)),
        allow("FillBoundedRoles", ["iam:PutRolePolicy"], [role], both(on_thing(installation), bounded)),
    ]


def _elb(names: tuple[str, ...]) -> list[str]:
    return [f"elasticloadbalancing:{name}" for name in names]
