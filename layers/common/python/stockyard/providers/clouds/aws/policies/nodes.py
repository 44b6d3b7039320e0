"""Rights of Stockyard for nodes in a tenant's account: launch templates of ours, and instant fleets by them."""

from __future__ import annotations

from stockyard.providers.clouds.aws.policies.statements import (
    ArnScope,
    Statement,
    allow,
    both,
    in_request,
    on_thing,
    shared,
    things,
)

CREATE_NODES = {
    "ec2:CreateFleet": ("fleet", "instance", "network-interface", "spot-instances-request", "volume"),
    "ec2:CreateLaunchTemplate": ("launch-template",),
}
"""Creating action -> resource types that the call makes and tags; a fleet runs instances in its caller's name."""
SPOT_REQUEST = "spot-instances-request"
"""What ``ec2:RunInstances`` makes besides when it is for spot."""
CREATE_NODES_WITHIN = ("security-group", "subnet")
"""Things that a fleet uses, and another account may share with this one."""
CHANGE_NODES = {
    "ec2:DeleteLaunchTemplate": ("launch-template",),
    "ec2:RebootInstances": ("instance",),
    "ec2:StartInstances": ("instance",),
    "ec2:StopInstances": ("instance",),
}
SPOT = "spot.amazonaws.com"


def nodes(here: ArnScope, installation: str) -> list[Statement]:
    """Launch templates, and instant fleets that use ours."""
    request_tagged, thing_tagged = in_request(installation), on_thing(installation)
    made_by = {"StringEquals": {"ec2:CreateAction": sorted(name.split(":")[1] for name in CREATE_NODES)}}
    run = {"StringEquals": {"ec2:CreateAction": ["RunInstances"]}}
    templates = [here.arn("ec2", "launch-template/*")]
    spot_requests = [here.arn("ec2", f"{SPOT_REQUEST}/*")]
    within = [here.arn("ec2", "image/*"), *(shared("ec2", f"{thing}/*") for thing in CREATE_NODES_WITHIN)]
    linked = here.arn("iam", f"role/aws-service-role/{SPOT}/AWSServiceRoleForEC2Spot")
    fleets = {"ec2:CreateFleet": CREATE_NODES["ec2:CreateFleet"]}
    return [
        allow("CreateFleets", ["ec2:CreateFleet"], things(here, fleets), request_tagged),
        allow("CreateFleetsWithin", ["ec2:CreateFleet"], within),
        allow("CreateSpotRequests", ["ec2:RunInstances"], spot_requests, request_tagged),
        allow("TagSpotRequests", ["ec2:CreateTags"], spot_requests, both(request_tagged, run)),
        allow("UseOurTemplates", ["ec2:CreateFleet", "ec2:RunInstances"], templates, thing_tagged),
        allow("CreateTemplates", ["ec2:CreateLaunchTemplate"], templates, request_tagged),
        allow("TagNewNodes", ["ec2:CreateTags"], things(here, CREATE_NODES), both(request_tagged, made_by)),
        allow("ChangeOurNodes", sorted(CHANGE_NODES), things(here, CHANGE_NODES), thing_tagged),
        # The first spot request of an account makes the service's own role in the caller's name.
        allow("FirstSpot", ["iam:CreateServiceLinkedRole"], [linked], {"StringEquals": {"iam:AWSServiceName": SPOT}}),
    ]
