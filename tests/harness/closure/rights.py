"""The closure itself: holders of rights that one session leads to, and what of others they can change.

A model of IAM on the documents of the template: a role that may be made, filled, handed to a service or taken over
gives its rights to whoever can do so; a thing that can be given our tag is changed, and is ours from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from moto.iam.aws_managed_policies import aws_managed_policies_data

from local.aws.conditions import many
from local.aws.permissions.policies import Ask, Context, Statement
from local.aws.permissions.sessions import Document
from local.aws.tenant_role import resources
from stockyard.providers.clouds.aws.policies.eks_roles import ATTACHED
from tests.harness.closure.changes import CHANGED, TAGGING
from tests.harness.closure.foreign import ACCOUNT, INSTALLATION, OUR_TAG, PREFIX, Thing, things

EVERYTHING: list[Statement] = [{"Sid": "All", "Effect": "Allow", "Action": "*", "Resource": "*"}]
SERVICES = (
    "dlm.amazonaws.com",
    "ec2.amazonaws.com",
    "eks.amazonaws.com",
    "lambda.amazonaws.com",
    "pods.eks.amazonaws.com",
)
_POLICIES = ("AdministratorAccess", *sorted({name for names in ATTACHED.values() for name in names}))
"""AWS's own policies that somebody may attach: those that we name, and the widest."""
OF_THE_SERVICE: Mapping[str, tuple[str, ...]] = {"SnapshotRole": ("ec2:CreateTags",)}
"""Role -> what its service does to its own new things alone, whoever asks: DLM tags the snapshots that it takes."""


@dataclass(frozen=True)
class Holder:
    """Holder of rights: our session, or a role that it leads to. ``limit`` is a boundary; None: there is none."""

    name: str
    own: Document
    limit: Document | None = None
    never: tuple[str, ...] = ()

    def may(self, action: str, arn: str, context: Context) -> bool:
        """Whether the policies allow it."""
        ask = Ask(action, arn, context)
        if action in self.never or not self.own.allows(ask):
            return False
        return self.limit is None or self.limit.allows(ask)


@dataclass(frozen=True)
class Role:
    """A role of ours that is there: made by the template or for a cluster."""

    name: str
    arn: str
    tags: Mapping[str, str]
    services: tuple[str, ...]
    own: Document
    boundary: str = ""
    project: str = ""
    """ARN of the project whose builds have the role; empty for none. Whoever starts one says what it does."""


@dataclass
class Account:
    """An account where a template is deployed. ``policies``: those that its owner wrote, by ARN."""

    template: Mapping[str, Any]
    parameters: Mapping[str, str]
    policies: Mapping[str, Sequence[Statement]] = field(default_factory=dict)

    @cached_property
    def _resources(self) -> dict[str, Any]:
        return resources(self.template, **self.parameters)

    @cached_property
    def session(self) -> Holder:
        """Our role, before it has done anything."""
        statements = [
            statement
            for name in self._resources["Role"]["ManagedPolicyArns"]
            for statement in self._resources[name]["PolicyDocument"]["Statement"]
        ]
        within = [
            properties for properties in self._resources.values() if {"PolicyName", "RoleName"} <= properties.keys()
        ]
        statements += [statement for properties in within for statement in properties["PolicyDocument"]["Statement"]]
        return Holder("our role", Document(_in_aws(statements)))

    @cached_property
    def boundaries(self) -> dict[str, Document]:
        """ARN -> the policies of the template that have a name."""
        own = {arn: Document(statements) for arn, statements in self.policies.items()}
        return own | {
            f"arn:aws:iam::{ACCOUNT}:policy/{properties['ManagedPolicyName']}": Document(
                _in_aws(properties["PolicyDocument"]["Statement"])
            )
            for properties in self._resources.values()
            if "ManagedPolicyName" in properties
        }

    def roles(self) -> Iterator[Role]:
        """Our roles that are there."""
        for name, properties in self._resources.items():
            if name != "Role" and "AssumeRolePolicyDocument" in properties:
                statements = [s for p in properties.get("Policies", ()) for s in p["PolicyDocument"]["Statement"]]
                arn = f"arn:aws:iam::{ACCOUNT}:role{properties.get('Path', '/')}{properties['RoleName']}"
                services = _trusted(properties["AssumeRolePolicyDocument"])
                for policy in properties.get("ManagedPolicyArns", ()):
                    statements += self.policies.get(policy) or _of_aws(policy)
                bound = properties.get("PermissionsBoundary", "")
                yield Role(name, arn, {}, services, Document(_in_aws(statements)), bound, self._project(name))
        bound = next((arn for arn in self.boundaries if "-eks-boundary-" in arn), "")
        trusted = {"cluster": SERVICES[2], "node": SERVICES[1], "efs-csi": SERVICES[4]}
        for key, names in ATTACHED.items():
            arn = f"arn:aws:iam::{ACCOUNT}:role/stockyard/{PREFIX}-c-0123456789ab-{key}-role"
            own = Document([s for name in names for s in _of_aws(name)])
            if bound:
                yield Role(f"the role {key} of EKS", arn, {OUR_TAG: INSTALLATION}, (trusted[key],), own, bound)

    def _project(self, role: str) -> str:
        """The project whose builds have the role; empty for none."""
        projects = [each["Name"] for each in self._resources.values() if each.get("ServiceRole") == role]
        return f"arn:aws:codebuild:us-east-1:{ACCOUNT}:project/{projects[0]}" if projects else ""


def closure(
    template: Mapping[str, Any], policies: Mapping[str, Sequence[Statement]] | None = None, **parameters: str
) -> dict[str, str]:
    """``action on whose kind`` -> the principals that reach it, for all actions of one session on foreign resources."""
    return dict(reversed(list(findings(Account(template, parameters, policies or {})))))


def findings(account: Account) -> Iterator[tuple[str, str]]:
    """The same one by one, as each is come upon."""
    holders: dict[str, Holder] = {account.session.name: account.session}
    marked: set[str] = set()
    while True:
        before = len(holders), len(marked)
        for holder in list(holders.values()):
            holders |= {reached.name: reached for reached in _reached(account, holder) if reached.name not in holders}
        for holder in holders.values():
            for action, thing, marks in _changes(holder, marked):
                yield f"{action} on {thing}", holder.name
                if marks:
                    marked.add(thing.arn)
        if (len(holders), len(marked)) == before:
            return


def _changes(holder: Holder, marked: set[str]) -> Iterator[tuple[str, Thing, bool]]:
    """Things that the holder can change, and whether each becomes ours by that."""
    for action, kinds in CHANGED.items():
        if not holder.own.names(action):
            continue
        is_tagging = action.rpartition(":")[2] in TAGGING
        for thing in (thing for kind in kinds for thing in _by_kind()[kind]):
            present = _present({**thing.tags, **({OUR_TAG: INSTALLATION} if thing.arn in marked else {})})
            for extra in _requests(action):
                if holder.may(action, thing.arn, {**present, **extra}):
                    yield action, thing, is_tagging and f"aws:RequestTag/{OUR_TAG}" in extra


def _reached(account: Account, holder: Holder) -> Iterator[Holder]:
    """The roles whose rights the holder can have."""
    for role in account.roles():
        here: Context = {**_present(role.tags), "iam:PermissionsBoundary": role.boundary}
        passed = any(
            holder.may("iam:PassRole", role.arn, {**here, "iam:PassedToService": service}) for service in role.services
        )
        if role.project:
            passed = passed or holder.may("codebuild:StartBuild", role.project, {"codebuild:source.buildspec": "any"})
        if passed or holder.may("iam:UpdateAssumeRolePolicy", role.arn, here):
            yield _filled(account, holder, role)
    arn = f"arn:aws:iam::{ACCOUNT}:role/stockyard/{PREFIX}-made-role"
    for bound in ("", *account.boundaries):
        context: Context = {
            f"aws:RequestTag/{OUR_TAG}": INSTALLATION,
            **({"iam:PermissionsBoundary": bound} if bound else {}),
        }
        if holder.may("iam:CreateRole", arn, context):
            name = f"a role that it made within {bound.rpartition('/')[2] or 'nothing'}"
            yield _filled(account, holder, Role(name, arn, {OUR_TAG: INSTALLATION}, (), Document([]), bound))


def _filled(account: Account, holder: Holder, role: Role) -> Holder:
    """The role with all that the holder can give it."""
    here: Context = {**_present(role.tags), **({"iam:PermissionsBoundary": role.boundary} if role.boundary else {})}
    statements = list(role.own.statements)
    if holder.may("iam:PutRolePolicy", role.arn, here):
        statements += EVERYTHING
    for name in _POLICIES:
        if holder.may("iam:AttachRolePolicy", role.arn, {**here, "iam:PolicyARN": _arn_of_aws(name)}):
            statements += _of_aws(name)
    limit = account.boundaries.get(role.boundary)
    for action in ("iam:DeleteRolePermissionsBoundary", "iam:PutRolePermissionsBoundary"):
        if holder.may(action, role.arn, here):
            limit = None
    never = OF_THE_SERVICE.get(role.name, ())
    return Holder(f"{holder.name} by {role.name}", Document(statements), limit, never)


def _present(tags: Mapping[str, str]) -> Context:
    present: Context = {"aws:ResourceAccount": ACCOUNT}
    for key, value in tags.items():
        present |= {f"{service}:ResourceTag/{key}": value for service in ("aws", "ec2", "autoscaling")}
    return present


@cache
def _requests(action: str) -> tuple[Context, ...]:
    """Conditions that the caller can choose beside the thing itself."""
    if action == "iam:PassRole":
        return tuple({"iam:PassedToService": service} for service in SERVICES)
    if action == "iam:AttachRolePolicy":
        return tuple({"iam:PolicyARN": _arn_of_aws(name)} for name in _POLICIES)
    names = [{"KubernetesCluster": name} for name in ("else", "production")]
    tags = ({OUR_TAG: INSTALLATION}, {"team": "b"}, {"efs.csi.aws.com/cluster": "true"}, *names)
    requests: list[Context] = [{}]
    for pairs in tags:
        keys: Context = {"aws:TagKeys": tuple(pairs)}
        requests.append({**keys, **{f"aws:RequestTag/{key}": value for key, value in pairs.items()}})
    return tuple(requests)


@cache
def _by_kind() -> dict[str, list[Thing]]:
    every = things()
    return {kind: [thing for thing in every if thing.kind == kind] for kinds in CHANGED.values() for kind in kinds}


def _trusted(document: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(s["Principal"]["Service"]) for s in document["Statement"] if "Service" in s["Principal"])


def _arn_of_aws(name: str) -> str:
    return f"arn:aws:iam::aws:policy/{name}"


@cache
def _texts() -> dict[str, Any]:
    texts: dict[str, Any] = json.loads(aws_managed_policies_data)
    return texts


def _of_aws(name: str) -> Sequence[Statement]:
    return list(many(_texts()[name.rpartition("/")[2]]["Document"]["Statement"]))


def _in_aws(statements: Sequence[Statement]) -> list[Statement]:
    return [{**statement, "Action": many(statement["Action"])} for statement in statements]
