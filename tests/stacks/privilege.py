"""Grants that the run in :mod:`tests.stacks.privilege_run` need not use, and the reading of policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from local.aws.permissions.table import TABLE
from stacks.statements import BY_THE_PLATFORM
from stockyard.providers.clouds.aws.policies.backup import BUCKET_ACTIONS, FIND_ACTIONS, OBJECT_ACTIONS

UNDO = "resumes, and takes back an acceptance whose Keycloak client could not be made; the crash matrix does both"
SWEEP = "the sweep of what a crash left; tests of the sweep do it, here nothing is left"
OVERTAKEN = "a deletion overtakes a change; its own tests do it, here the changes have ended before"
DISRUPTION = "a decision about nodes; the passes' own tests make them, here no cluster has an agent that tells of pods"
GROUPS = "a pool of a node group is changed by its settings; the tests of pools do it, here no pool has a group"
SITES = "a host is reached through a site; the tests of accounts with a site do it, here none has one"
CHANGES = ("ChangeManaged", "UpgradeManaged", "ChangeBalanced", "UpgradeBalanced")
CONSOLE = "a machine did not come up; its console is kept before that is ended"
RUNS = "begins runs of templates, which need a program that may not be built here; tests/e2e has them"
UNUSED: Mapping[tuple[str, str], str] = {
    ("clusters", "Table dynamodb:DeleteItem"): UNDO,
    ("requests", "Table dynamodb:DeleteItem"): UNDO,
    ("apply", "Table dynamodb:DeleteItem"): UNDO,
    ("apply", "Table dynamodb:BatchGetItem"): "reads the nodes when a manifest changes a ready cluster",
    ("apply", "ClusterSecrets kms:Decrypt"): "opens an account's access key, where the stage allows such accounts",
    ("requests", "Table dynamodb:BatchGetItem"): "reads the nodes when a deletion is planned",
    ("requests", "Table dynamodb:Query"): "pages through a ledger when a deletion is planned",
    ("pools", "ClusterSecrets kms:Decrypt"): GROUPS,
    ("pools", "TenantRoles sts:AssumeRole"): GROUPS,
    ("pools", "Fetch lambda:InvokeFunction"): GROUPS,
    ("requests", "Fetch lambda:InvokeFunction"): "an event asks for a cluster in a region that nobody has named; here "
    "it is one that an account has",
    **{(function, "SiteSeals kms:GenerateDataKey"): SITES for function in ("catalog", "node_phases", "reaper")},
    ("reaper", "DeleteCluster states:DescribeExecution"): SWEEP,
    ("reaper", "ProvisionCluster states:DescribeExecution"): SWEEP,
    ("reaper", "ProvisionStandaloneCluster states:DescribeExecution"): SWEEP,
    ("reaper", "DeleteStandaloneCluster states:DescribeExecution"): SWEEP,
    ("reaper", "ProvisionManagedCluster states:DescribeExecution"): SWEEP,
    ("reaper", "DeleteManagedCluster states:DescribeExecution"): SWEEP,
    **{("reaper", f"{workflow}Cluster states:DescribeExecution"): SWEEP for workflow in CHANGES},
    **{
        ("cluster_phases", f"{workflow}Cluster states:{action}Execution"): OVERTAKEN
        for workflow in CHANGES
        for action in ("Describe", "Stop")
    },
    ("reaper", "RetagCluster states:DescribeExecution"): SWEEP,
    ("reaper", "DeleteNode states:DescribeExecution"): SWEEP,
    ("reaper", "PowerNode states:DescribeExecution"): SWEEP,
    ("reaper", "ProvisionNode states:DescribeExecution"): SWEEP,
    **{
        (function, grant): RUNS
        for function in ("cluster_phases", "node_phases", "reaper")
        for grant in (
            "RunSeals kms:GenerateDataKey",
            "RunsObjects s3:GetObject",
            "RunsObjects s3:PutObject",
            "StatesObjects s3:DeleteObject",
            "StatesObjects s3:GetObject",
            "Listing s3:ListBucket",
        )
    },
    ("runs", "LogsObjects s3:PutObject"): "the run on record here is of no operation; tests/e2e has one that is",
    ("runs", "Listing s3:ListBucket"): "S3 asks for it only where an object is not there",
    ("cluster_phases", "LogsObjects s3:PutObject"): CONSOLE,
    ("node_phases", "LogsObjects s3:PutObject"): CONSOLE,
    ("records", "Listing s3:ListBucket"): "S3 asks for it where an object is not there",
    ("records", "LogsObjects s3:GetObject"): "a run has printed lines; here no machine fails",
    ("cluster_phases", "Wake states:SendTaskSuccess"): "the machine reported before the workflow waited for it; "
    "here it reports afterwards, the tests of the report do both",
    ("reaper", "Table dynamodb:BatchGetItem"): SWEEP,
    ("reaper", "Table dynamodb:DeleteItem"): SWEEP,
    ("reaper", "Table dynamodb:PutItem"): SWEEP,
    ("reaper", "Table dynamodb:UpdateItem"): SWEEP,
    (
        "node_phases",
        "Table dynamodb:BatchGetItem",
    ): "a claim takes a machine of a node group or waits for one; its tests do it, here no agent joins",
    (
        "node_claims",
        "Table dynamodb:DeleteItem",
    ): "a claim that nothing was made for goes at once, unless a pass over it is faster, as may be here",
    (
        "autoscaler",
        "Passes lambda:InvokeFunction",
    ): "the schedule begins a pass over a pool that is due; here the events "
    "of pools are faster, the autoscaler's tests do it",
    ("disruptor", "Table dynamodb:ConditionCheckItem"): DISRUPTION,
    ("disruptor", "Table dynamodb:DeleteItem"): DISRUPTION,
    ("disruptor", "Table dynamodb:UpdateItem"): DISRUPTION,
    ("relay", "Table dynamodb:PutItem"): "puts off what was refused; the relay's tests do it, here nothing is",
}
"""(function, granted action that this run need not use) -> when it is used."""
CONTROLLER_MADE = (
    "removes what the cluster's own controllers made; here no cluster really runs, the provider's tests do it"
)
OF_CLAIMS = (
    "a claim takes a machine of a node group or gives it back; the tests of that source do it, here no agent joins"
)
ON_EKS = "clusters on EKS; the template's own tests hold each of its statements against the driver's calls"
OF_MEMBERS = "members of a control plane join or go; here none joins, the driver's tests call it"
OF_SNAPSHOTS = "snapshots of etcd; here no cluster asks for them, the driver's tests hold each call against it"
OF_RUNS = "no node provider has a program in that run; the contract of runners and a local cloud's test start builds"
UNUSED_BY_TENANT: Mapping[str, str] = {
    "ChangeAccessentry eks:DisassociateAccessPolicy": f"a person has given a role another policy: {ON_EKS}",
    "ChangeAddon eks:UpdateAddon": f"another version of an add-on: {ON_EKS}",
    "ChangeOurGroups autoscaling:SetDesiredCapacity": OF_CLAIMS,
    "ChangeOurGroups autoscaling:TerminateInstanceInAutoScalingGroup": OF_CLAIMS,
    "MarkMachines ec2:CreateTags": OF_CLAIMS,
    "ReadGroups autoscaling:DescribeScalingActivities": OF_CLAIMS,
    "ReadReservations ec2:DescribeCapacityReservations": f"a node group of a capacity block: {ON_EKS}",
    **{f"FollowRuns codebuild:{action}": OF_RUNS for action in ("BatchGetBuilds", "StopBuild")},
    "StartRuns codebuild:StartBuild": OF_RUNS,
    "ReadLogsOfRuns logs:GetLogEvents": OF_RUNS,
    "Read servicequotas:GetAWSDefaultServiceQuota": "nobody has raised a quota; the tests of quotas ask for one",
    "ReadEksImages ssm:GetParameter": "a machine beside the node groups starts; its source's tests do it",
    "RemoveInterfaces ec2:DeleteNetworkInterface": f"pods left an interface behind: {ON_EKS}",
    "UseReservations ec2:RunInstances": "a node group of a capacity block: EKS tries in the caller's name",
    "NameClusterOfMembers ec2:CreateTags": "a member is older than its tag; the driver's tests have one",
    "ChangeOurBalancers elasticloadbalancing:DeregisterTargets": OF_MEMBERS,
    "Read elasticloadbalancing:DescribeTargetHealth": OF_MEMBERS,
    **{f"OurBuckets {action}": OF_SNAPSHOTS for action in BUCKET_ACTIONS},
    **{f"KeepSnapshots {action}": OF_SNAPSHOTS for action in OBJECT_ACTIONS},
    **{f"FindBuckets {action}": OF_SNAPSHOTS for action in FIND_ACTIONS},
    **{
        f"{sid} ec2:{action}PlacementGroup": f"a node group with EFA: {ON_EKS}"
        for sid, action in (("CreatePlacement", "Create"), ("UseOurPlacement", "Delete"))
    },
    "TagNewPlacement ec2:CreateTags": f"a node group with EFA: {ON_EKS}",
    "UseOurPlacement ec2:RunInstances": "a node group with EFA: EKS tries in the caller's name",
    "ListSnapshots s3:ListBucket": OF_SNAPSHOTS,
    "ChangeOurBalancers elasticloadbalancing:SetSubnets": "a network grows by a zone; the driver's tests let it",
    "ChangeOurs ec2:GetConsoleOutput": "a machine did not come up; it is asked before that is ended",
    "ChangeOurs ec2:RevokeSecurityGroupIngress": CONTROLLER_MADE,
    "RemoveLeftoversBalancers ec2:DeleteSecurityGroup": CONTROLLER_MADE,
    "RemoveLeftoversBalancers elasticloadbalancing:DeleteLoadBalancer": CONTROLLER_MADE,
    "RemoveLeftoversBalancers elasticloadbalancing:DeleteTargetGroup": CONTROLLER_MADE,
    "RemoveLeftoversEbs ec2:DeleteVolume": CONTROLLER_MADE,
    "RemoveLeftoversServices ec2:DeleteSecurityGroup": CONTROLLER_MADE,
    "RemoveLeftoversServices elasticloadbalancing:DeleteLoadBalancer": CONTROLLER_MADE,
    "RemoveLeftoversServices elasticloadbalancing:DeleteTargetGroup": CONTROLLER_MADE,
    "Roles iam:DetachRolePolicy": "a person or a tool of the tenant has attached a policy to the node role",
}
"""Granted action of the tenant's role that this run need not use -> when it is used."""
WIDE_FOR_TENANTS: Mapping[str, str] = {
    "Read": "The Describe actions and IAM's lists know no resource; they are what the sweep finds our things by",
    "ReadEks": "EKS lists clusters, and the versions of add-ons, by actions that know no resource",
    "ReadGroups": "The Describe actions of EC2 Auto Scaling know no resource",
    "ReadReservations": "EC2 describes capacity reservations by an action that knows no resource",
    "ControllersRead": "The boundary, and a control plane's role: what controllers read by Describe actions",
    "ReadTheMachine": "The node role: a kubelet reads the machine that it runs on by Describe actions",
}
"""Statement in a tenant's account -> why its resource is ``*``."""


OURS_WITHOUT_RESOURCE = frozenset(
    {
        *(f"logs:{command}LogDelivery" for command in ("Create", "Delete", "Get", "Update")),
        "logs:DescribeLogGroups",
        "logs:DescribeResourcePolicies",
        "logs:ListLogDeliveries",
        "logs:PutResourcePolicy",
        "eks:DescribeClusterVersions",
        "pricing:GetProducts",
        *(f"xray:{command}" for command in ("GetSamplingRules", "GetSamplingTargets")),
        *(f"xray:{command}" for command in ("PutTelemetryRecords", "PutTraceSegments")),
    }
)
"""Actions without resources except ``*`` that our own account alone is asked for."""


def has_no_resource(action: str) -> bool:
    """Whether the action allows only ``*`` as its resource."""
    service, _, operation = action.partition(":")
    row = TABLE.get(service, {}).get(operation)
    asks_for_all = row is not None and row.__name__ == "everything"
    described = action.startswith(("ec2:Describe", "elasticloadbalancing:Describe", "autoscaling:Describe"))
    return action in {*OURS_WITHOUT_RESOURCE, "s3:ListAllMyBuckets"} or described or asks_for_all


class Attributes(dict[str, str]):
    """Every attribute of a resource; which value it has does not matter here."""

    def __init__(self, logical: str) -> None:
        super().__init__()
        self._logical = logical

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> str:
        return f"{self._logical}.{name}"


def resolved(value: Any) -> Any:
    """A value of a template with the partition filled in."""
    if isinstance(value, dict):
        if "Fn::If" in value:  # an account without clusters of an earlier release
            return resolved(value["Fn::If"][2])
        return resolved(value["Fn::Sub"]) if "Fn::Sub" in value else {k: resolved(v) for k, v in value.items()}
    if isinstance(value, list):
        return [resolved(item) for item in value]
    return value.replace("${AWS::Partition}", "aws") if isinstance(value, str) else value


def listed(statements: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each statement with lists, where a policy may spell a single value without one."""

    def many(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    return [
        {**statement, "Action": many(statement["Action"]), "Resource": many(statement["Resource"])}
        for statement in statements
    ]


def grants(statements: Iterable[Mapping[str, Any]]) -> set[str]:
    """``statement action`` of each that is allowed to our own code."""
    return {
        f"{statement['Sid']} {action}"
        for statement in statements
        if statement["Effect"] == "Allow" and statement["Sid"] not in BY_THE_PLATFORM
        for action in statement["Action"]
    }
