"""The calls of EFS, EC2 Auto Scaling and the Data Lifecycle Manager, and of what only tells, as AWS's checks."""

from __future__ import annotations

from collections.abc import Iterator

from local.aws.permissions import linked
from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call, pass_role, request_tags, resource_tags, tag_keys, tags_of
from local.aws.permissions.policies import Ask, Context

VIA: Context = {"aws:ViaAWSService": "true"}
SNAPSHOTS = "dlm.amazonaws.com"


def everything(call: Call, _account: Account) -> Iterator[Ask]:
    """The check of a call that knows no resource."""
    yield Ask(call.action, "*")


def parameter(call: Call, _account: Account) -> Iterator[Ask]:
    """The check of a public parameter, which belongs to no account."""
    yield Ask(call.action, f"arn:aws:ssm:{call.region}::parameter{call.parameters['Name']}")


# --- EFS --------------------------------------------------------------------------------------------------------------


def file_system(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a new file system."""
    tags = tags_of(call.parameters.get("Tags"))
    arn = call.arn("file-system/*")
    yield Ask(call.action, arn, request_tags(tags))
    if tags:
        create: Context = {"elasticfilesystem:CreateAction": call.operation, "aws:TagKeys": tuple(tags)}
        yield Ask("elasticfilesystem:TagResource", arn, {**request_tags(tags), **create})
    yield from linked.first_use(account, linked.FILES)


def files(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call on file systems or mount targets, whose interfaces EFS makes in the caller's name."""
    parameters = call.parameters
    target = account.mount_target(parameters.get("MountTargetId", ""))
    system = parameters.get("FileSystemId") or parameters.get("ResourceId") or target.get("FileSystemId") or "any"
    arn = call.arn(f"file-system/{system}")
    tags = request_tags(tags_of(parameters.get("Tags")))
    yield Ask(call.action, arn, {**resource_tags(account.file_system(system)), **tags, **tag_keys(parameters)})
    if call.operation == "CreateMountTarget":
        for read in ("ec2:DescribeSubnets", "ec2:DescribeNetworkInterfaces"):
            yield Ask(read, "*", VIA)
        yield Ask("ec2:CreateNetworkInterface", call.ec2("network-interface", "*"), VIA)
        groups = [("security-group", group) for group in parameters.get("SecurityGroups") or ()]
        for kind, thing in [("subnet", parameters["SubnetId"]), *groups]:
            context = {**VIA, **resource_tags(account.tags(thing))}
            yield Ask("ec2:CreateNetworkInterface", call.ec2(kind, thing), context)
    if call.operation == "DeleteMountTarget":
        interface = str(target.get("NetworkInterfaceId") or "*")
        yield Ask("ec2:DeleteNetworkInterface", call.ec2("network-interface", interface), VIA)


# --- EC2 Auto Scaling -------------------------------------------------------------------------------------------------


def scaling(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call on an auto scaling group, or on a machine in one."""
    parameters = call.parameters
    tags = parameters.get("Tags") or ()
    name = (
        parameters.get("AutoScalingGroupName")
        or next((tag["ResourceId"] for tag in tags), "")
        or account.scaling_group_of(str(parameters.get("InstanceId")))
        or "absent"
    )
    context = {**resource_tags(account.scaling_group(name)), **request_tags(tags_of(tags)), **tag_keys(parameters)}
    yield Ask(call.action, call.arn(f"autoScalingGroup:id:autoScalingGroupName/{name}"), context)


# --- Data Lifecycle Manager -------------------------------------------------------------------------------------------


def lifecycle(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call on a lifecycle policy."""
    parameters = call.parameters
    if "ResourceArn" in parameters:
        arn = str(parameters["ResourceArn"])
        requested = request_tags(parameters.get("Tags") or {})
        own = resource_tags(account.lifecycle_policy(arn.rpartition("/")[2]))
        yield Ask(call.action, arn, {**own, **requested, **tag_keys(parameters)})
        return
    policy = str(parameters.get("PolicyId") or "*")
    tags, arn = dict(parameters.get("Tags") or {}), call.arn(f"policy/{policy}")
    yield Ask(call.action, arn, {**request_tags(tags), **resource_tags(account.lifecycle_policy(policy))})
    if tags:
        yield Ask("dlm:TagResource", arn, {**request_tags(tags), "aws:TagKeys": tuple(tags)})
    if parameters.get("ExecutionRoleArn"):
        yield pass_role(parameters["ExecutionRoleArn"], SNAPSHOTS)
