"""EC2's actions with the types of resources that AWS checks for each, as its Service Authorization Reference says."""

from __future__ import annotations

from collections.abc import Mapping

PREFIXES: Mapping[str, str] = {
    "vpc": "vpc",
    "subnet": "subnet",
    "igw": "internet-gateway",
    "rtb": "route-table",
    "nat": "natgateway",
    "eipalloc": "elastic-ip",
    "sg": "security-group",
    "i": "instance",
    "vol": "volume",
    "eni": "network-interface",
    "ami": "image",
    "rtbassoc": "association",
    "lt": "launch-template",
    "fleet": "fleet",
    "snap": "snapshot",
    "sir": "spot-instances-request",
    "cr": "capacity-reservation",
    "pg": "placement-group",
    "vpce": "vpc-endpoint",
}
"""Prefix of an id in EC2 -> the resource type in an ARN."""
CREATED_TYPES: Mapping[str, tuple[str, ...]] = {
    "AllocateAddress": ("elastic-ip",),
    "CreateInternetGateway": ("internet-gateway",),
    "CreateLaunchTemplate": ("launch-template",),
    "CreateNatGateway": ("natgateway",),
    "CreatePlacementGroup": ("placement-group",),
    "CreateRouteTable": ("route-table",),
    "CreateSecurityGroup": ("security-group",),
    "CreateSubnet": ("subnet",),
    "CreateVolume": ("volume",),
    "CreateVpc": ("vpc",),
    "CreateVpcEndpoint": ("vpc-endpoint",),
    "RunInstances": ("instance", "volume", "network-interface"),
}
"""EC2 action -> types that it creates, each checked with the tags that the request gives to that type."""
RETAGGED = tuple(sorted(set(PREFIXES.values()) - {"association", "fleet", "image"}))
"""Types whose tags the calls for tags alone may change."""
USED: Mapping[str, tuple[str, ...]] = {
    "AllocateAddress": (),
    "AssociateRouteTable": ("route-table", "subnet"),
    "AttachInternetGateway": ("internet-gateway", "vpc"),
    "AttachVolume": ("instance", "volume"),
    "AuthorizeSecurityGroupEgress": ("security-group",),
    "AuthorizeSecurityGroupIngress": ("security-group",),
    "CreateInternetGateway": (),
    "CreateLaunchTemplate": (),
    "CreateNatGateway": ("subnet", "elastic-ip"),
    "CreatePlacementGroup": (),
    "CreateRoute": ("route-table",),
    "CreateTags": RETAGGED,
    "CreateRouteTable": ("vpc",),
    "CreateSecurityGroup": ("vpc",),
    "CreateSubnet": ("vpc",),
    "CreateVolume": (),
    "CreateVpc": (),
    "CreateVpcEndpoint": ("route-table", "vpc"),
    "DeleteInternetGateway": ("internet-gateway",),
    "DeleteLaunchTemplate": ("launch-template",),
    "DeleteNatGateway": ("natgateway",),
    "DeleteNetworkInterface": ("network-interface",),
    "DeletePlacementGroup": ("placement-group",),
    "DeleteRouteTable": ("route-table",),
    "DeleteSecurityGroup": ("security-group",),
    "DeleteSnapshot": ("snapshot",),
    "DeleteSubnet": ("subnet",),
    "DeleteTags": RETAGGED,
    "DeleteVolume": ("volume",),
    "DeleteVpc": ("vpc",),
    "DeleteVpcEndpoints": ("vpc-endpoint",),
    "DetachInternetGateway": ("internet-gateway", "vpc"),
    "DetachVolume": ("instance", "volume"),
    "DisassociateRouteTable": ("route-table", "subnet"),
    "GetConsoleOutput": ("instance",),
    "ModifySubnetAttribute": ("subnet",),
    "ModifyVolume": ("volume",),
    "ModifyVpcAttribute": ("vpc",),
    "ModifyVpcEndpoint": ("route-table", "vpc-endpoint"),
    "RebootInstances": ("instance",),
    "ReleaseAddress": ("elastic-ip",),
    "RevokeSecurityGroupIngress": ("security-group",),
    "RunInstances": (
        "capacity-reservation",
        "image",
        "key-pair",
        "launch-template",
        "placement-group",
        "security-group",
        "subnet",
    ),
    "StartInstances": ("instance",),
    "StopInstances": ("instance",),
    "TerminateInstances": ("instance",),
}
"""EC2 action -> types of existing resources that are checked."""
OF_A_FLEET: Mapping[str, tuple[str, ...]] = {
    "CreateFleet": ("image", "subnet", "security-group"),
    "RunInstances": ("capacity-reservation", "image", "key-pair", "placement-group", "security-group", "subnet"),
}
"""Action that a fleet asks -> types of resources that it uses besides the template."""
KEYED = frozenset({"AttachVolume", "CreateVolume", "RunInstances", "StartInstances"})
"""Calls for which EC2 uses the key of a volume in the caller's name."""
