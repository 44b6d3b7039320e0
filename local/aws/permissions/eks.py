"""EKS's calls as the permission checks that AWS does, those in its caller's name too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.aws.permissions import ec2, linked
from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call, pass_role, request_tags, resource_tags, tag_keys
from local.aws.permissions.policies import Ask, Context, Wording

PODS = "pods.eks.amazonaws.com"
VERSIONS = "ec2:DescribeLaunchTemplateVersions"
REFUSED = "InvalidRequestException"
CREATED: Mapping[str, tuple[str, str]] = {
    "CreateAccessEntry": ("access-entry", "principalArn"),
    "CreateAddon": ("addon", "addonName"),
    "CreateNodegroup": ("nodegroup", "nodegroupName"),
    "CreatePodIdentityAssociation": ("podidentityassociation", "serviceAccount"),
}
"""Operation -> the type that it makes in a cluster, and what names it."""
_PARTS = (
    ("nodegroupName", "groups", "nodegroupArn", "nodegroup"),
    ("addonName", "addons", "addonArn", "addon"),
    ("principalArn", "entries", "accessEntryArn", "access-entry"),
    ("associationId", "associations", "associationArn", "podidentityassociation"),
)
"""What names a part of a cluster, where the account has it, the field of its ARN, and its type."""
OF_THE_CLUSTER = frozenset({"ListAccessEntries", "ListAddons", "ListNodegroups", "ListPodIdentityAssociations"})


def everything(call: Call, _account: Account) -> Iterator[Ask]:
    """The check of a call that knows no resource."""
    yield Ask(call.action, "*")


def asks(call: Call, account: Account) -> Iterator[Ask]:
    """The check of a call on a cluster or a part of one."""
    arn = _part(call, account) or _cluster(call)
    yield Ask(call.action, arn, resource_tags(account.eks_thing(arn)))


def retagged(call: Call, account: Account) -> Iterator[Ask]:
    """The check of a call that changes tags alone."""
    arn = call.parameters["resourceArn"]
    tags = request_tags(call.parameters.get("tags") or {})
    yield Ask(call.action, arn, {**resource_tags(account.eks_thing(arn)), **tags, **tag_keys(call.parameters)})


def cluster(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a new cluster."""
    arn, tags = _cluster(call), call.parameters.get("tags") or {}
    yield Ask(call.action, arn, request_tags(tags))
    yield from _tagged(arn, tags)
    yield pass_role(call.parameters["roleArn"], linked.EKS)
    for config in call.parameters.get("encryptionConfig") or ():
        for action in ("kms:DescribeKey", "kms:CreateGrant"):
            yield Ask(action, config["provider"]["keyArn"])
    yield from linked.first_use(account, linked.EKS)


def part(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of something new in a cluster."""
    parameters, arn = call.parameters, _cluster(call)
    kind, name = CREATED[call.operation]
    tags = parameters.get("tags") or {}
    yield Ask(call.action, arn, {**request_tags(tags), **resource_tags(account.eks_thing(arn))})
    own = "*" if kind == "podidentityassociation" else f"{parameters[name]}/*"
    yield from _tagged(call.arn(f"{kind}/{parameters['clusterName']}/{own}"), tags)
    if call.operation == "CreateNodegroup":
        yield from _group(call, account)
    if call.operation == "CreatePodIdentityAssociation":
        yield from _pod_role(parameters["roleArn"])
    yield from _addon_roles(call, account)


def addon(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a change of an add-on."""
    yield from asks(call, account)
    yield from _addon_roles(call, account)


def group_version(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of another version of a group: if it has a launch template, that is tried again."""
    yield from asks(call, account)
    cluster_of = account.eks_cluster(call.parameters["clusterName"])
    group = None if cluster_of is None else cluster_of.groups.get(call.parameters["nodegroupName"])
    document: Mapping[str, Any] = {} if group is None else group.document
    template = {**(document.get("launchTemplate") or {}), **(call.parameters.get("launchTemplate") or {})}
    if template:
        yield from _template(call, account, template, document.get("subnets") or ())


def _group(call: Call, account: Account) -> Iterator[Ask]:
    parameters = call.parameters
    name = linked.LINKED[linked.NODE_GROUPS]
    text = f"Failed to validate if SLR: {name} already exists due to missing permissions for 'iam:GetRole'"
    # IAM knows the path of a role that is there alone.
    yield Ask("iam:GetRole", account.identity("role", name)[0], wording=Wording(REFUSED, text))
    yield from linked.first_use(account, linked.NODE_GROUPS)
    yield from linked.first_use(account, linked.SCALING)
    yield pass_role(parameters["nodeRole"], linked.EKS)
    for read in ("iam:GetRole", "iam:ListAttachedRolePolicies"):
        wording = Wording(REFUSED, f"Failed to validate the node role due to missing permissions for '{read}'")
        yield Ask(read, parameters["nodeRole"], wording=wording)
    if parameters.get("launchTemplate"):
        yield from _template(call, account, parameters["launchTemplate"], parameters["subnets"])


def _template(call: Call, account: Account, template: Mapping[str, Any], subnets: Any) -> Iterator[Ask]:
    """EKS reads the version of the template, and tries a launch, in the caller's name."""
    text = f"You are not authorized to describe the launch template version: {VERSIONS}"
    yield Ask(VERSIONS, "*", wording=Wording(REFUSED, text))
    template_id, data = account.launch_template(template)
    text = "You are not authorized to launch instances with this launch template."
    yield from ec2.launched(call, account, template_id, data, subnets, Wording(REFUSED, text))
    if data.get("IamInstanceProfile"):
        yield pass_role(account.role_of_profile(data["IamInstanceProfile"]), wording=Wording(REFUSED, text))


def _pod_role(arn: str) -> Iterator[Ask]:
    yield pass_role(arn, PODS)
    yield Ask("iam:GetRole", arn)


def _addon_roles(call: Call, account: Account) -> Iterator[Ask]:
    """An add-on gets roles for its pods by associations of its own, or one by the cluster's issuer."""
    if "Addon" not in call.operation:
        return
    arn = _cluster(call)
    for association in call.parameters.get("podIdentityAssociations") or ():
        yield Ask("eks:CreatePodIdentityAssociation", arn, resource_tags(account.eks_thing(arn)))
        yield from _pod_role(association["roleArn"])
    if call.parameters.get("serviceAccountRoleArn"):
        yield pass_role(call.parameters["serviceAccountRoleArn"], linked.EKS)


def _tagged(arn: str, tags: Mapping[str, str]) -> Iterator[Ask]:
    if tags:
        context: Context = {**request_tags(tags), "aws:TagKeys": tuple(tags)}
        yield Ask("eks:TagResource", arn, context)


def _cluster(call: Call) -> str:
    return call.arn(f"cluster/{call.parameters.get('clusterName') or call.parameters['name']}")


def _part(call: Call, account: Account) -> str:
    """The ARN of the part of a cluster that a call names; empty: it names none."""
    if call.operation in OF_THE_CLUSTER:
        return ""
    name = call.parameters.get("clusterName") or call.parameters.get("name")
    cluster_of = account.eks_cluster(str(name))
    for field, things, arn, kind in _PARTS:
        own = call.parameters.get(field)
        if own:
            thing = None if cluster_of is None else getattr(cluster_of, things).get(own)
            return str(thing.document[arn]) if thing is not None else call.arn(f"{kind}/{name}/{own}/absent")
    return ""
