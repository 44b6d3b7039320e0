"""Rights for daily snapshots of volumes: the role of AWS's Data Lifecycle Manager, and what we may do by it."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.kinds.dlm import role_name
from stockyard.providers.clouds.aws.policies.statements import (
    ArnScope,
    Statement,
    allow,
    in_request,
    not_of_others,
    on_thing,
    policy,
    trust,
)

SERVICE = "dlm.amazonaws.com"


def snapshots(here: ArnScope, installation: str, account: CloudAccount, prefix: str) -> list[Statement]:
    """Policies of ours, and the snapshots that they have taken."""
    request_tagged, thing_tagged = in_request(installation), on_thing(installation)
    policies, role = [here.arn("dlm", "policy/*")], here.arn("iam", f"role/{role_name(account, prefix)}")
    snapshot = here.arn("ec2", "snapshot/*")
    return [
        allow(
            "CreateSnapshotPolicies",
            ["dlm:CreateLifecyclePolicy", "dlm:TagResource"],
            policies,
            {**request_tagged, **not_of_others(installation)},
        ),
        allow("DeleteOurSnapshotPolicies", ["dlm:DeleteLifecyclePolicy"], policies, thing_tagged),
        allow("PassSnapshotRole", ["iam:PassRole"], [role], {"StringEquals": {"iam:PassedToService": SERVICE}}),
        allow("DeleteOurSnapshots", ["ec2:DeleteSnapshot"], [snapshot], thing_tagged),
    ]


def snapshot_role(here: ArnScope, installation: str, account: CloudAccount, prefix: str) -> dict[str, Any]:
    """The role that takes snapshots of our volumes, and deletes none but those that carry our tag."""
    volume, snapshot = here.arn("ec2", "volume/*"), here.arn("ec2", "snapshot/*")
    reads = ["ec2:DescribeInstances", "ec2:DescribeSnapshots", "ec2:DescribeVolumes"]
    tagged = on_thing(installation)
    statements = [
        allow("ReadVolumes", reads, ["*"]),
        allow("TakeOfOurVolumes", ["ec2:CreateSnapshot", "ec2:CreateSnapshots"], [volume], tagged),
        # The service says in its own order which tags a new snapshot gets.
        allow("TakeSnapshots", ["ec2:CreateSnapshot", "ec2:CreateSnapshots", "ec2:CreateTags"], [snapshot]),
        allow("DeleteOldSnapshots", ["ec2:DeleteSnapshot"], [snapshot], tagged),
    ]
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "RoleName": role_name(account, prefix),
            "AssumeRolePolicyDocument": policy([trust(SERVICE)]),
            "Policies": [{"PolicyName": "snapshots", "PolicyDocument": policy(statements)}],
        },
    }
