"""The CloudFormation template a tenant deploys: the role Stockyard assumes, and the boundary of the roles it makes.

Every action is written out. Creating needs our installation's tag in the request, changing and deleting needs it on
the thing, so that the role cannot touch anything else in the account. Where AWS offers no resource or condition for an
action, ``*`` stands alone in a statement that only reads.

What only some clusters need is in parts, which whoever deploys the template may leave out; see ``template_parts``.
"""

from __future__ import annotations

from typing import Any, Protocol

from stockyard.domain.records import CloudAccount
from stockyard.errors import Internal
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.policies import backup as backup_statements
from stockyard.providers.clouds.aws.policies import controller as controller_statements
from stockyard.providers.clouds.aws.policies import eks as eks_statements
from stockyard.providers.clouds.aws.policies import eks_bounds, eks_roles, template_parts, template_versions
from stockyard.providers.clouds.aws.policies import kubeadm as kubeadm_statements
from stockyard.providers.clouds.aws.policies import scaling as scaling_statements
from stockyard.providers.clouds.aws.policies.boundary import boundary_name
from stockyard.providers.clouds.aws.policies.controller import FOR_AWS, VIA_EC2, VOLUME_KEY
from stockyard.providers.clouds.aws.policies.nodes import nodes
from stockyard.providers.clouds.aws.policies.snapshots import snapshot_role, snapshots
from stockyard.providers.clouds.aws.policies.statements import (
    ArnScope,
    Statement,
    allow,
    both,
    in_request,
    managed,
    not_of_others,
    on_thing,
    policy,
    resolved,
    shared,
    things,
)
from stockyard.providers.clouds.aws.policies.tagging import changed_tags, named_clusters
from stockyard.providers.clouds.aws.policies.template_parts import BLOCKS, EKS, FILES, KUBEADM
from stockyard.providers.clouds.aws.sessions import account_number, has_access_key, is_root, principal_arn

READ = (
    "dlm:GetLifecyclePolicies",
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeImages",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeKeyPairs",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeNatGateways",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSnapshots",
    "ec2:DescribeSpotInstanceRequests",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "ec2:GetEbsDefaultKmsKeyId",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeTags",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
    "iam:ListInstanceProfiles",
    "iam:ListRoles",
    "s3:ListAllMyBuckets",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
)
"""AWS offers no resource narrower than ``*`` for these."""
CREATE_EC2 = {
    "ec2:AllocateAddress": ("elastic-ip",),
    "ec2:CreateInternetGateway": ("internet-gateway",),
    "ec2:CreateNatGateway": ("natgateway",),
    "ec2:CreateRouteTable": ("route-table",),
    "ec2:CreateSecurityGroup": ("security-group",),
    "ec2:CreateSubnet": ("subnet",),
    "ec2:CreateVolume": ("volume",),
    "ec2:CreateVpc": ("vpc",),
    "ec2:RunInstances": ("instance", "volume", "network-interface"),
}
"""Creating action -> resource types that the call makes and tags."""
CREATE_ENDPOINT = {"ec2:CreateVpcEndpoint": ("vpc-endpoint",)}
"""The same in a statement of its own: of the things above it would change those of others, their route tables."""
CREATE_WITHIN = {
    "InVpc": (("ec2:CreateRouteTable", "ec2:CreateSubnet"), ("vpc",)),
    "InSubnet": (("ec2:CreateNatGateway",), ("elastic-ip", "subnet")),
    "Machine": (("ec2:RunInstances",), ("image", "key-pair")),
}
"""Name -> actions and the existing things they use; a VPC, subnet or key pair may be the tenant's own. None of
the actions makes one of the things: that would be allowed without our tag."""
CREATE_WITHIN_SHARED = {
    "InSharedVpc": (("ec2:CreateSecurityGroup", "ec2:GetSecurityGroupsForVpc"), ("vpc",)),
    "InSharedSubnet": (("ec2:RunInstances",), ("security-group", "subnet")),
}
"""The same of things that may be of another account, which shares them: the owner's number is in their ARNs."""
CHANGE_EC2 = {
    "ec2:AssociateRouteTable": ("route-table", "subnet"),
    "ec2:AttachInternetGateway": ("internet-gateway", "vpc"),
    "ec2:AttachVolume": ("instance", "volume"),
    "ec2:AuthorizeSecurityGroupIngress": ("security-group",),
    "ec2:CreateRoute": ("route-table",),
    "ec2:CreateVpcEndpoint": ("vpc",),
    "ec2:DeleteInternetGateway": ("internet-gateway",),
    "ec2:DeleteNatGateway": ("natgateway",),
    "ec2:DeleteRouteTable": ("route-table",),
    "ec2:DeleteSecurityGroup": ("security-group",),
    "ec2:DeleteSubnet": ("subnet",),
    "ec2:DeleteVolume": ("volume",),
    "ec2:DeleteVpc": ("vpc",),
    "ec2:DeleteVpcEndpoints": ("vpc-endpoint",),
    "ec2:DetachInternetGateway": ("internet-gateway", "vpc"),
    "ec2:DisassociateRouteTable": ("route-table", "subnet"),
    "ec2:GetConsoleOutput": ("instance",),
    "ec2:ModifyVpcAttribute": ("vpc",),
    "ec2:ModifyVpcEndpoint": ("route-table", "vpc-endpoint"),
    "ec2:ReleaseAddress": ("elastic-ip",),
    "ec2:RevokeSecurityGroupIngress": ("security-group",),
    "ec2:TerminateInstances": ("instance",),
}
ROLE_ACTIONS = (
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy",
)
PROFILE_ACTIONS = (
    "iam:AddRoleToInstanceProfile",
    "iam:DeleteInstanceProfile",
    "iam:RemoveRoleFromInstanceProfile",
)
READ_IDENTITIES = (
    "iam:GetInstanceProfile",
    "iam:GetRole",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
)
_BALANCING_PARTS = [
    "ec2:DeleteSecurityGroup",
    "elasticloadbalancing:DeleteLoadBalancer",
    "elasticloadbalancing:DeleteTargetGroup",
]
CONTROLLER_TAGS = {
    "ebs": ("ebs.csi.aws.com/cluster", ["ec2:DeleteVolume"]),
    "balancers": ("elbv2.k8s.aws/cluster", _BALANCING_PARTS),
    "services": ("kubernetes.io/service-name", _BALANCING_PARTS),
}
"""What a cluster's controllers made is known by a tag whose *key* holds the cluster, which a condition cannot name; the
controllers set these besides: EBS driver, load balancer controller, cloud controller. Other clusters of the account
have them too, so what is removed must also carry our installation's tag, which the controllers take as an extra one."""


_KEYS = resolved(shared("kms", "key/*"))
"""Keys of whatever account: their own policies say who may use them."""


class Stage(Protocol):
    """Needs of the template from our own side; ``stockyard.settings.Settings`` is one."""

    @property
    def name_prefix(self) -> str: ...

    @property
    def principal_pattern(self) -> str: ...

    @property
    def allow_access_keys(self) -> bool: ...


_POLICIES = {
    "EksPermissions": EKS,
    "EksRolePermissions": EKS,
    "GroupPermissions": EKS,
    "KubeadmPermissions": KUBEADM,
    "MachinePermissions": "",
    "NodePermissions": "",
    "TagPermissions": "",
}
"""Policy -> the part of the template that it belongs to; empty: it is in all. IAM attaches ten to a role, and an
organization may attach some of its own."""


def render(account: CloudAccount, installation: str, stage: Stage) -> dict[str, Any]:
    """The template as a document. Raises ``Internal`` when the stage names no principal pattern."""
    if len(stage.principal_pattern.split(":")) < 6:
        raise Internal("This stage has no principal pattern, so no role can trust it.")
    here = ArnScope(account_number(account))
    prefix = stage.name_prefix
    statements = _statements(here, installation, account, prefix)
    users = _users(account)
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Lets Stockyard make Kubernetes clusters in this account, and nothing else.",
        "Parameters": template_parts.parameters(),
        "Conditions": template_parts.conditions(),
        "Resources": {
            **_boundaries(here, installation, account, prefix),
            **{
                name: template_parts.conditional(managed(policy(statements[name]), users=users), feature)
                for name, feature in _POLICIES.items()
            },
            "SnapshotRole": template_parts.conditional(snapshot_role(here, installation, account, prefix), KUBEADM),
            **({} if has_access_key(account) else {"Role": _role(account, stage)}),
        },
        "Outputs": {"RoleArn": {"Value": {"Fn::GetAtt": ["Role", "Arn"]}}} if not has_access_key(account) else {},
    }


def _role(account: CloudAccount, stage: Stage) -> dict[str, Any]:
    """The role that we assume."""
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "RoleName": template_versions.role_name(account),
            "Tags": [
                {"Key": template_versions.TAG, "Value": str(template_versions.CURRENT)},
                template_parts.tag(),
            ],
            "AssumeRolePolicyDocument": policy([_own_trust(account, stage)]),
            "ManagedPolicyArns": template_parts.attached(_POLICIES),
        },
    }


def _users(account: CloudAccount) -> list[str]:
    """The name of the user whose access key the account has: the policies are attached to it. The root user may do
    everything, and takes none."""
    return [principal_arn(account).rsplit("/", 1)[-1]] if has_access_key(account) and not is_root(account) else []


def _boundaries(here: ArnScope, installation: str, account: CloudAccount, prefix: str) -> dict[str, Any]:
    """Bounds of the roles of machines: each kind of cluster has its own."""
    marks = {tags.INSTALLATION: installation}
    volumes = controller_statements.volumes(lambda *parts: resolved(here.arn(*parts)), _KEYS, marks, marks)
    volumes += backup_statements.of_machines(here.account, _KEYS)
    on_eks = eks_bounds.boundary(
        lambda *parts: resolved(here.arn(*parts)),
        installation,
        lambda condition: template_parts.with_earlier(None, condition),
    )
    names = boundary_name(account, prefix), eks_roles.managed_boundary_name(account, prefix)
    return {
        "Boundary": template_parts.conditional(managed(policy(volumes), names[0]), KUBEADM),
        "EksBoundary": template_parts.conditional(managed(policy(on_eks), names[1]), EKS),
    }


def _statements(here: ArnScope, installation: str, account: CloudAccount, prefix: str) -> dict[str, list[Statement]]:
    """Policy -> its statements. IAM takes 6,144 characters a managed policy."""
    tagged = in_request(installation), on_thing(installation)
    own_role = here.arn("iam", principal_arn(account).split(":", 5)[5])
    return {
        "EksPermissions": eks_statements.clusters(here, installation, prefix),
        "EksRolePermissions": eks_statements.roles(here, installation, account, prefix),
        "GroupPermissions": [
            *eks_statements.groups(here, installation, prefix),
            *scaling_statements.processes(here, installation),
            *eks_statements.placement(here, installation),
            *template_parts.statements_of(FILES, eks_statements.files(here, installation)),
            *template_parts.statements_of(BLOCKS, eks_statements.blocks()),
        ],
        "KubeadmPermissions": [
            *named_clusters(here, installation, prefix),
            *kubeadm_statements.balancing(here, installation),
            *kubeadm_statements.roles(here, installation, prefix, boundary_name(account, prefix)),
            *snapshots(here, installation, account, prefix),
            *backup_statements.backups(here.account, prefix),
        ],
        "MachinePermissions": _machines(here, *tagged),
        "NodePermissions": [*nodes(here, installation), *_identities(here, installation, prefix)],
        "TagPermissions": [
            *changed_tags(here, installation, prefix),
            *_controllers(here, tagged[1]),
            *([] if has_access_key(account) else [allow("ReadOwnVersion", ["iam:ListRoleTags"], [own_role])]),
        ],
    }


def _own_trust(account: CloudAccount, stage: Stage) -> Statement:
    """Only our functions may take the role, and only with the external id of this account."""
    own_account = stage.principal_pattern.split(":")[4]
    return {
        "Effect": "Allow",
        "Principal": {"AWS": {"Fn::Sub": f"arn:${{AWS::Partition}}:iam::{own_account}:root"}},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"sts:ExternalId": account.external_id},
            "StringLike": {"aws:PrincipalArn": stage.principal_pattern},
        },
    }


def _machines(here: ArnScope, request_tagged: dict[str, Any], thing_tagged: dict[str, Any]) -> list[Statement]:
    parameters = "arn:${AWS::Partition}:ssm:*::parameter/aws/service"
    images = [f"{parameters}/canonical/ubuntu/server/*", f"{parameters}/deeplearning/ami/*"]
    created = {**CREATE_EC2, **CREATE_ENDPOINT}
    made_by = {"StringEquals": {"ec2:CreateAction": sorted(name.split(":")[1] for name in created)}}
    return [
        allow("Read", list(READ), ["*"]),
        allow("ReadImageParameter", ["ssm:GetParameter"], images),
        allow("Create", sorted(CREATE_EC2), things(here, CREATE_EC2), request_tagged),
        allow("CreateEndpoint", sorted(CREATE_ENDPOINT), things(here, CREATE_ENDPOINT), request_tagged),
        *(
            allow(f"Create{name}", list(actions), things(here, {name: used}))
            for name, (actions, used) in CREATE_WITHIN.items()
        ),
        *(
            allow(f"Create{name}", list(actions), [shared("ec2", f"{kind}/*") for kind in used])
            for name, (actions, used) in CREATE_WITHIN_SHARED.items()
        ),
        allow("TagWhatIsCreated", ["ec2:CreateTags"], things(here, created), both(request_tagged, made_by)),
        allow("ChangeOurs", sorted(CHANGE_EC2), things(here, CHANGE_EC2), thing_tagged),
        # Where volumes are encrypted by a key that is not AWS's, EC2 asks for these in the caller's name. A central key
        # is of another account, whose key policy decides.
        allow("EncryptedVolumes", list(VOLUME_KEY), [shared("kms", "key/*")], VIA_EC2),
        allow("GrantsOfVolumes", ["kms:CreateGrant"], [shared("kms", "key/*")], {**VIA_EC2, **FOR_AWS}),
    ]


def _identities(here: ArnScope, installation: str, prefix: str) -> list[Statement]:
    request_tagged, thing_tagged = in_request(installation), on_thing(installation)
    role = here.arn("iam", f"role{iam_kinds.PATH}{prefix}-*-role")
    profile = here.arn("iam", f"instance-profile{iam_kinds.PATH}{prefix}-*-instance-profile")
    # A call names a thing without its path; of an absent one, which a deletion has to see, IAM knows no path either.
    pathless = [
        here.arn("iam", f"role/{prefix}-*-role"),
        here.arn("iam", f"instance-profile/{prefix}-*-instance-profile"),
    ]
    passed = {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "eks.amazonaws.com"]}}
    return [
        allow(
            "TagNewIdentities",
            ["iam:TagInstanceProfile", "iam:TagRole"],
            [role, profile],
            {**request_tagged, **not_of_others(installation)},
        ),
        allow("CreateProfiles", ["iam:CreateInstanceProfile"], [profile], request_tagged),
        # Path and name are ours alone, and a read of an absent thing has no tag to look at.
        allow("ReadIdentities", list(READ_IDENTITIES), [role, profile, *pathless]),
        # Two installations of one prefix may work in one account: each changes its own alone.
        allow("Roles", list(ROLE_ACTIONS), [role], thing_tagged),
        allow("Profiles", list(PROFILE_ACTIONS), [profile], thing_tagged),
        allow("PassRoles", ["iam:PassRole"], [role], passed),
    ]


def _controllers(here: ArnScope, thing_tagged: dict[str, Any]) -> list[Statement]:
    """Rights to remove what a cluster's own controllers leave: with their tag and with ours, which they are told to
    set."""
    resources = {
        "ec2:DeleteVolume": here.arn("ec2", "volume/*"),
        "ec2:DeleteSecurityGroup": here.arn("ec2", "security-group/*"),
        "elasticloadbalancing:DeleteLoadBalancer": here.arn("elasticloadbalancing", "loadbalancer/*"),
        "elasticloadbalancing:DeleteTargetGroup": here.arn("elasticloadbalancing", "targetgroup/*"),
    }
    return [
        allow(
            f"RemoveLeftovers{name.capitalize()}",
            actions,
            [resources[action] for action in actions],
            {**thing_tagged, "StringLike": {f"aws:ResourceTag/{key}": "?*"}},
        )
        for name, (key, actions) in CONTROLLER_TAGS.items()
    ]
