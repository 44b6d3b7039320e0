"""Kinds of things that each action changes, by AWS's Service Authorization Reference. An action that is neither here,
nor a read, nor one that only makes or uses things is refused by the test: nobody has thought about it."""

from __future__ import annotations

from collections.abc import Mapping

TAGGED_EC2 = (
    "elastic-ip",
    "instance",
    "internet-gateway",
    "launch-template",
    "natgateway",
    "network-interface",
    "placement-group",
    "route-table",
    "security-group",
    "snapshot",
    "spot-instances-request",
    "subnet",
    "volume",
    "vpc",
    "vpc-endpoint",
)
_EC2: Mapping[str, tuple[str, ...]] = {
    "AssignPrivateIpAddresses": ("network-interface",),
    "AssociateRouteTable": ("route-table", "subnet"),
    "AttachInternetGateway": ("internet-gateway", "vpc"),
    "AttachNetworkInterface": ("instance", "network-interface"),
    "AttachVolume": ("instance", "volume"),
    "AuthorizeSecurityGroupEgress": ("security-group",),
    "AuthorizeSecurityGroupIngress": ("security-group",),
    "CreateRoute": ("route-table",),
    "CreateVpcEndpoint": ("route-table", "vpc"),
    "CreateTags": TAGGED_EC2,
    "DeleteInternetGateway": ("internet-gateway",),
    "DeleteLaunchTemplate": ("launch-template",),
    "DeleteNatGateway": ("natgateway",),
    "DeleteNetworkInterface": ("network-interface",),
    "DeletePlacementGroup": ("placement-group",),
    "DeleteRoute": ("route-table",),
    "DeleteRouteTable": ("route-table",),
    "DeleteSecurityGroup": ("security-group",),
    "DeleteSnapshot": ("snapshot",),
    "DeleteSubnet": ("subnet",),
    "DeleteTags": TAGGED_EC2,
    "DeleteVolume": ("volume",),
    "DeleteVpc": ("vpc",),
    "DeleteVpcEndpoints": ("vpc-endpoint",),
    "DetachInternetGateway": ("internet-gateway", "vpc"),
    "DetachNetworkInterface": ("instance", "network-interface"),
    "DetachVolume": ("instance", "volume"),
    "DisassociateRouteTable": ("route-table", "subnet"),
    "ModifyInstanceAttribute": ("instance",),
    "ModifyNetworkInterfaceAttribute": ("network-interface",),
    "ModifySubnetAttribute": ("subnet",),
    "ModifyVolume": ("volume",),
    "ModifyVpcAttribute": ("vpc",),
    "ModifyVpcEndpoint": ("route-table", "vpc-endpoint"),
    "RebootInstances": ("instance",),
    "ReleaseAddress": ("elastic-ip",),
    "RevokeSecurityGroupIngress": ("security-group",),
    "StartInstances": ("instance",),
    "StopInstances": ("instance",),
    "TerminateInstances": ("instance",),
    "UnassignPrivateIpAddresses": ("network-interface",),
}
_EKS = {
    "AssociateAccessPolicy": ("access-entry",),
    "CreateAccessEntry": ("cluster",),
    "CreateAddon": ("cluster",),
    "CreateNodegroup": ("cluster",),
    "CreatePodIdentityAssociation": ("cluster",),
    "DeleteAccessEntry": ("access-entry",),
    "DeleteAddon": ("addon",),
    "DeleteCluster": ("cluster",),
    "DeleteNodegroup": ("nodegroup",),
    "DeletePodIdentityAssociation": ("podidentityassociation",),
    "DisassociateAccessPolicy": ("access-entry",),
    "TagResource": ("access-entry", "addon", "cluster", "nodegroup", "podidentityassociation"),
    "UntagResource": ("access-entry", "addon", "cluster", "nodegroup", "podidentityassociation"),
    "UpdateAddon": ("addon",),
    "UpdateClusterConfig": ("cluster",),
    "UpdateClusterVersion": ("cluster",),
    "UpdateNodegroupConfig": ("nodegroup",),
    "UpdateNodegroupVersion": ("nodegroup",),
}
_GROUPS = (
    "CreateOrUpdateTags",
    "ResumeProcesses",
    "SetDesiredCapacity",
    "SuspendProcesses",
    "TerminateInstanceInAutoScalingGroup",
    "UpdateAutoScalingGroup",
)
_BALANCERS = (
    "ApplySecurityGroupsToLoadBalancer",
    "AttachLoadBalancerToSubnets",
    "ConfigureHealthCheck",
    "CreateListener",
    "CreateLoadBalancerListeners",
    "CreateLoadBalancerPolicy",
    "DeleteLoadBalancer",
    "DeleteLoadBalancerListeners",
    "DeregisterInstancesFromLoadBalancer",
    "DetachLoadBalancerFromSubnets",
    "ModifyLoadBalancerAttributes",
    "RegisterInstancesWithLoadBalancer",
    "SetLoadBalancerPoliciesForBackendServer",
    "SetLoadBalancerPoliciesOfListener",
    "SetSubnets",
)
_TARGETS = ("DeleteTargetGroup", "DeregisterTargets", "ModifyTargetGroup", "ModifyTargetGroupAttributes")
_ROLE = (
    "AttachRolePolicy",
    "DeleteRole",
    "DeleteRolePermissionsBoundary",
    "DeleteRolePolicy",
    "DetachRolePolicy",
    "PassRole",
    "PutRolePermissionsBoundary",
    "PutRolePolicy",
    "TagRole",
    "UntagRole",
    "UpdateAssumeRolePolicy",
)
_PROFILE = (
    "AddRoleToInstanceProfile",
    "DeleteInstanceProfile",
    "RemoveRoleFromInstanceProfile",
    "TagInstanceProfile",
    "UntagInstanceProfile",
)
_USER = ("AttachUserPolicy", "CreateAccessKey", "CreateLoginProfile", "PutUserPolicy")
_POLICY = ("CreatePolicyVersion", "DeletePolicy", "SetDefaultPolicyVersion")
_BUCKET = (
    "DeleteBucket",
    "PutBucketPolicy",
    "PutBucketPublicAccessBlock",
    "PutBucketTagging",
    "PutBucketVersioning",
    "PutEncryptionConfiguration",
    "PutLifecycleConfiguration",
)
_OBJECT = ("DeleteObject", "DeleteObjectVersion", "PutObject")


def _of(service: str, kind: str, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {f"{service}:{name}": (kind,) for name in names}


CHANGED: Mapping[str, tuple[str, ...]] = {
    **{f"ec2:{name}": tuple(f"ec2:{kind}" for kind in kinds) for name, kinds in _EC2.items()},
    **{f"eks:{name}": tuple(f"eks:{kind}" for kind in kinds) for name, kinds in _EKS.items()},
    **_of("autoscaling", "autoscaling:group", _GROUPS),
    **_of("elasticloadbalancing", "elb:loadbalancer", _BALANCERS),
    **_of("elasticloadbalancing", "elb:targetgroup", (*_TARGETS, "RegisterTargets")),
    **_of("elasticloadbalancing", "elb:listener", ("DeleteListener", "ModifyListener")),
    **{
        f"elasticloadbalancing:{name}": ("elb:listener", "elb:loadbalancer", "elb:targetgroup")
        for name in ("AddTags", "RemoveTags")
    },
    **_of("elasticfilesystem", "efs:file-system", ("CreateMountTarget", "DeleteFileSystem", "DeleteMountTarget")),
    **_of("elasticfilesystem", "efs:access-point", ("DeleteAccessPoint",)),
    **_of("elasticfilesystem", "efs:file-system", ("CreateAccessPoint",)),
    **{
        f"elasticfilesystem:{name}": ("efs:access-point", "efs:file-system")
        for name in ("TagResource", "UntagResource")
    },
    **_of("dlm", "dlm:policy", ("DeleteLifecyclePolicy", "TagResource", "UntagResource", "UpdateLifecyclePolicy")),
    **_of("iam", "iam:role", _ROLE),
    **_of("sts", "iam:role", ("AssumeRole",)),
    **_of("iam", "iam:instance-profile", _PROFILE),
    **_of("iam", "iam:user", _USER),
    **_of("iam", "iam:policy", _POLICY),
    **_of("s3", "s3:bucket", _BUCKET),
    **_of("s3", "s3:object", _OBJECT),
}
"""Action -> kinds of existing things that it changes, or that it gives the rights of."""
READS = ("BatchCheck", "BatchGet", "Describe", "Get", "List")
"""How the names of actions begin that only look."""
MAKES: Mapping[str, str] = {
    "codebuild:StartBuild": "makes a build, whose role's rights the closure follows",
    "codebuild:StopBuild": "ends a build of the project that is for runs",
    "dlm:CreateLifecyclePolicy": "makes a policy, whose role we pass",
    "ec2:AllocateAddress": "makes an address",
    "ec2:CreateFleet": "makes machines; images, groups and subnets are used",
    "ec2:CreateInternetGateway": "makes a gateway",
    "ec2:CreateLaunchTemplate": "makes a template",
    "ec2:CreateNatGateway": "makes a gateway; an address and a subnet are used",
    "ec2:CreateNetworkInterface": "makes an interface; groups and a subnet are used",
    "ec2:CreatePlacementGroup": "makes a placement group",
    "ec2:CreateRouteTable": "makes a table in a VPC, which may be the tenant's own",
    "ec2:CreateSecurityGroup": "makes a group in a VPC, which may be the tenant's own",
    "ec2:CreateSnapshot": "makes a snapshot of a volume, which it only reads",
    "ec2:CreateSnapshots": "makes snapshots of volumes, which it only reads",
    "ec2:CreateSubnet": "makes a subnet in a VPC, which may be the tenant's own",
    "ec2:CreateVolume": "makes a volume",
    "ec2:CreateVpc": "makes a VPC",
    "ec2:RunInstances": "makes machines; images, groups, keys, reservations and subnets are used",
    "eks-auth:AssumeRoleForPodIdentity": "gives a pod its role, which an association of ours names",
    "eks:CreateCluster": "makes a cluster",
    "elasticfilesystem:CreateFileSystem": "makes a file system",
    "elasticloadbalancing:CreateLoadBalancer": "makes a balancer",
    "elasticloadbalancing:CreateTargetGroup": "makes a target group",
    "iam:CreateInstanceProfile": "makes a profile",
    "iam:CreateRole": "makes a role, whose rights the closure follows",
    "iam:CreateServiceLinkedRole": "makes a role of a service, whose rights AWS wrote",
    "kms:CreateGrant": "lets EC2 use a key for a volume of the caller's",
    "kms:Decrypt": "uses a key for a volume of the caller's, through EC2, or for an object, through S3",
    "kms:GenerateDataKey": "uses a key for an object, through S3",
    "kms:GenerateDataKeyWithoutPlaintext": "uses a key for a volume of the caller's, through EC2",
    "kms:ReEncryptFrom": "uses a key for a volume of the caller's, through EC2",
    "kms:ReEncryptTo": "uses a key for a volume of the caller's, through EC2",
    "s3:CreateBucket": "makes a bucket",
}
"""Action that changes nothing that is there -> what it does."""
TAGGING = ("CreateOrUpdateTags", "CreateTags", "AddTags", "TagResource", "TagRole", "TagInstanceProfile")
"""Names of actions that give a thing tags."""
