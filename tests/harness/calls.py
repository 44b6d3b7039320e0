"""Recorded calls as the permission checks that AWS would do: each call's action on each resource, and implied actions.

The tables repeat AWS's Service Authorization Reference for each action. They are independent of our policies, so that
they can prove our policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.harness import s3_actions
from tests.harness.ec2_actions import CREATED_TYPES, OF_A_FLEET, PREFIXES, USED
from tests.harness.eks_calls import ManagedThings
from tests.harness.policies import Ask

Call = Mapping[str, Any]
Tags = dict[str, str]
Context = dict[str, str | tuple[str, ...]]
"""Condition keys of a call."""

MACHINE = "ec2.amazonaws.com"
SNAPSHOTS = "dlm.amazonaws.com"
BALANCING = "elasticloadbalancing.amazonaws.com"
ASKED_FOR_THE_FIRST_BALANCER = (
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeInternetGateways",
)
"""What Elastic Load Balancing asks in the caller's name while its own role is missing, as it is in a new account."""
OF_A_VOLUME_KEY = ("Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo")
BALANCING_ROLE = f"role/aws-service-role/{BALANCING}/AWSServiceRoleForElasticLoadBalancing"
"""Elastic Load Balancing creates this role as its caller, with an account's first load balancer or target group."""
SPOT = "spot.amazonaws.com"
SPOT_ROLE = f"role/aws-service-role/{SPOT}/AWSServiceRoleForEC2Spot"
"""EC2 creates this role as its caller, with an account's first request for spot capacity."""
WITHOUT_RESOURCE = frozenset(
    {
        "dlm:GetLifecyclePolicies",
        *(f"iam:List{things}" for things in ("InstanceProfiles", "Roles")),
        *(f"logs:{command}LogDelivery" for command in ("Create", "Delete", "Get", "Update")),
        "logs:DescribeLogGroups",
        "logs:DescribeResourcePolicies",
        "logs:ListLogDeliveries",
        "logs:PutResourcePolicy",
        "eks:DescribeClusterVersions",
        "pricing:GetProducts",
        "eks:DescribeAddonVersions",
        "eks:ListClusters",
        "servicequotas:GetServiceQuota",
        *(f"xray:{command}" for command in ("GetSamplingRules", "GetSamplingTargets")),
        *(f"xray:{command}" for command in ("PutTelemetryRecords", "PutTraceSegments")),
    }
)
"""Actions without resources except ``*``, besides the Describe actions of EC2 and Elastic Load Balancing."""


@dataclass
class Account:
    """The state of a tenant's account, as far as the calls show it. It must get every call, in order."""

    number: str
    path: str
    tags: dict[str, Tags] = field(default_factory=dict)
    boundaries: dict[str, str] = field(default_factory=dict)
    associations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    """Instance profile -> the role in it."""
    snapshot_tags: Tags = field(default_factory=dict)
    """What the latest snapshot policy gives its snapshots."""
    node_tags: dict[str, Tags] = field(default_factory=dict)
    """Resource type -> what the latest fleet gives it; its answer does not tell the ids of all that it made."""
    templates: dict[str, tuple[str, Call]] = field(default_factory=dict)
    """Name of a launch template -> its id and its data."""

    @cached_property
    def managed(self) -> ManagedThings:
        """The checks of services that make things of other services."""
        return ManagedThings(self.number, self.tags, self.node_tags, self.templates, PREFIXES)

    def asks(self, call: Call) -> list[Ask]:
        """The permission checks that AWS does for this call."""
        service = call["service"]
        kinds: Mapping[str, Callable[[Call], Iterator[Ask]]] = {
            "EC2": self._ec2,
            "Elastic Load Balancing v2": self._balancing,
            "Elastic Load Balancing": self._balancing,
            "DLM": self._dlm,
            "IAM": self._iam,
            "S3": lambda call: s3_actions.asks(self.number, call["operation"], call["parameters"]),
            "SSM": self._ssm,
            "Service Quotas": lambda call: iter([Ask(f"servicequotas:{call['operation']}", "*")]),
            "STS": self._sts,
            **self.managed.kinds(),
        }
        return list(kinds[service](call))

    # --- one method a service ----------------------------------------------------------------------------------------

    def _ec2(self, call: Call) -> Iterator[Ask]:
        operation, parameters = call["operation"], call["parameters"]
        action = f"ec2:{operation}"
        if operation.startswith("Describe"):
            yield Ask(action, "*")
            for interface in (call.get("answer") or {}).get("NetworkInterfaces", ()):
                self.tags.setdefault(interface["NetworkInterfaceId"], tags_of(interface.get("TagSet", ())))
            return
        if operation == "CreateFleet":
            yield from self._fleet(call)
            return
        named = self._named(parameters)
        for kind in USED[operation]:
            for thing in named.get(kind, ()):
                latest = self.snapshot_tags if kind == "snapshot" else self.node_tags.get(kind, {})
                if operation == "CreateTags" and kind in _BY_EKS:
                    self.tags.setdefault(thing, {**latest, _BY_EKS[kind]: "its"})
                context = resource_tags(self.tags.get(thing, latest))
                if operation == "CreateTags":
                    context |= request_tags(tags_of(parameters["Tags"]))
                yield Ask(action, self._arn(call, kind, thing), {**context, **tag_keys(operation, parameters)})
                if operation == "CreateTags" and not call.get("error"):
                    self.tags[thing] = {**self.tags.get(thing, latest), **tags_of(parameters["Tags"])}
        request_tags_by_type = {
            specification["ResourceType"]: tags_of(specification["Tags"])
            for specification in parameters.get("TagSpecifications", ())
        }
        for kind in CREATED_TYPES.get(operation, ()):
            yield Ask(action, self._arn(call, kind, "new"), request_tags(request_tags_by_type.get(kind, {})))
        for kind, tags in request_tags_by_type.items():
            context = {**request_tags(tags), "ec2:CreateAction": operation}
            yield Ask("ec2:CreateTags", self._arn(call, kind, "new"), context)
        profile = parameters.get("IamInstanceProfile", {}).get("Name")
        if profile:
            yield self._pass(self.roles[profile])
            yield from self._volume_key(call)
        self._learn(operation, parameters, call.get("answer") or {}, request_tags_by_type)

    def _fleet(self, call: Call) -> Iterator[Ask]:
        """Checks for CreateFleet and, as the same caller, RunInstances: used and created resources, and their tags."""
        parameters = call["parameters"]
        (config,) = parameters["LaunchTemplateConfigs"]
        template, data = self.templates[config["LaunchTemplateSpecification"]["LaunchTemplateName"]]
        named = self._named({"given": parameters, "data": data})
        request_tags_by_type = {
            specification["ResourceType"]: tags_of(specification["Tags"])
            for specification in (*parameters["TagSpecifications"], *data["TagSpecifications"])
        }
        self.node_tags.update(request_tags_by_type)
        for operation in ("CreateFleet", "RunInstances"):
            action = f"ec2:{operation}"
            for kind in OF_A_FLEET:
                for thing in named[kind]:
                    yield Ask(action, self._arn(call, kind, thing), resource_tags(self.tags.get(thing, {})))
            yield Ask(action, self._arn(call, "launch-template", template), resource_tags(self.tags[template]))
            for kind, tags in request_tags_by_type.items():
                if kind == "fleet" and operation != "CreateFleet":
                    continue
                new = self._arn(call, kind, "new")
                yield Ask(action, new, request_tags(tags))
                yield Ask("ec2:CreateTags", new, {**request_tags(tags), "ec2:CreateAction": operation})
        yield self._pass(self.roles[data["IamInstanceProfile"]["Name"]])
        yield from self._volume_key(call)
        if "SpotOptions" in parameters:
            linked = f"arn:aws:iam::{self.number}:{SPOT_ROLE}"
            yield Ask("iam:CreateServiceLinkedRole", linked, {"iam:AWSServiceName": SPOT})
        self._learn("CreateFleet", parameters, call.get("answer") or {}, request_tags_by_type)

    def _balancing(self, call: Call) -> Iterator[Ask]:
        operation, parameters = call["operation"], call["parameters"]
        action = f"elasticloadbalancing:{operation}"
        if operation.startswith("Describe"):
            yield Ask(action, "*")
            return
        if operation in ("AddTags", "RemoveTags"):
            for arn in map(_network, parameters["ResourceArns"]):
                yield Ask(action, arn, {**resource_tags(self.tags.get(arn, {})), **tag_keys(operation, parameters)})
            return
        tags = tags_of(parameters.get("Tags", ()))
        answer = call.get("answer") or {}
        created = [
            resource for kind in ("LoadBalancers", "TargetGroups", "Listeners") for resource in answer.get(kind, ())
        ]
        arns = [_network(str(v)) for resource in created for k, v in resource.items() if k in _OWN_ARN[operation]]
        for arn in arns:
            self.tags[arn] = tags
        on = [_network(str(parameters[k])) for k in ("LoadBalancerArn", "TargetGroupArn") if k in parameters] or arns
        for arn in on:
            yield Ask(action, arn, {**request_tags(tags), **resource_tags(self.tags.get(arn, {}))})
        if operation in {"CreateLoadBalancer", "CreateTargetGroup"}:
            linked = f"arn:aws:iam::{self.number}:{BALANCING_ROLE}"
            yield Ask("iam:CreateServiceLinkedRole", linked, {"iam:AWSServiceName": BALANCING})
        if operation == "CreateLoadBalancer":
            for read in ASKED_FOR_THE_FIRST_BALANCER:
                yield Ask(read, "*")
            yield Ask("ec2:GetSecurityGroupsForVpc", self._arn(call, "vpc", "its"))
        if tags:
            for arn in arns:
                context = {**request_tags(tags), "elasticloadbalancing:CreateAction": operation}
                yield Ask("elasticloadbalancing:AddTags", arn, context)

    def _iam(self, call: Call) -> Iterator[Ask]:
        operation, parameters = call["operation"], call["parameters"]
        profile, role = parameters.get("InstanceProfileName"), parameters.get("RoleName")
        if operation.startswith("List") and not role:
            yield Ask(f"iam:{operation}", "*")
            return
        if operation == "ListRoleTags":  # of the tenant's own role, which has no path
            yield Ask(f"iam:{operation}", f"arn:aws:iam::{self.number}:role/{role}")
            return
        tags = tags_of(parameters.get("Tags", ()))
        kind, name = ("instance-profile", profile) if profile else ("role", role)
        arn = self._identity(kind, str(name))
        if operation.startswith(("Tag", "Untag")):
            context = {**resource_tags(self.tags.get(arn, {})), **tag_keys(operation, parameters)}
            yield Ask(f"iam:{operation}", arn, context)
            return
        if operation == "CreateRole":
            self.boundaries[arn] = parameters.get("PermissionsBoundary", "")
        if tags and not call.get("error"):
            self.tags[arn] = tags
            yield Ask(f"iam:Tag{'InstanceProfile' if profile else 'Role'}", arn, request_tags(tags))
        context = {**request_tags(tags), **resource_tags(self.tags.get(arn, {}))}
        if self.boundaries.get(arn):
            context["iam:PermissionsBoundary"] = self.boundaries[arn]
        if "PolicyArn" in parameters:
            context["iam:PolicyARN"] = parameters["PolicyArn"]
        yield Ask(f"iam:{operation}", arn, context)
        if operation == "AddRoleToInstanceProfile":
            self.roles[str(profile)] = str(role)
            yield self._pass(str(role))

    def _dlm(self, call: Call) -> Iterator[Ask]:
        operation, parameters = call["operation"], call["parameters"]
        if operation == "GetLifecyclePolicies":
            yield Ask(f"dlm:{operation}", "*")
            return
        if operation in ("TagResource", "UntagResource"):
            arn = parameters["ResourceArn"]
            context = {**resource_tags(self.tags.get(arn, {})), **tag_keys(operation, parameters)}
            yield Ask(f"dlm:{operation}", arn, context)
            return
        tags = dict(parameters.get("Tags", {}))
        policy_id = parameters.get("PolicyId") or (call.get("answer") or {}).get("PolicyId", "new")
        arn = f"arn:aws:dlm:{call['region']}:{self.number}:policy/{policy_id}"
        if operation == "CreateLifecyclePolicy":
            self.tags[arn] = tags
            self.snapshot_tags.update(tags_of(parameters["PolicyDetails"]["Schedules"][0]["TagsToAdd"]))
            yield Ask("dlm:TagResource", arn, request_tags(tags))
            yield Ask("iam:PassRole", parameters["ExecutionRoleArn"], {"iam:PassedToService": SNAPSHOTS})
        yield Ask(f"dlm:{operation}", arn, {**request_tags(tags), **resource_tags(self.tags.get(arn, {}))})

    def _ssm(self, call: Call) -> Iterator[Ask]:
        # Public parameters belong to no account.
        name = call["parameters"]["Name"]
        yield Ask(f"ssm:{call['operation']}", f"arn:aws:ssm:{call['region']}::parameter{name}")

    def _sts(self, call: Call) -> Iterator[Ask]:
        operation = call["operation"]
        if operation == "AssumeRole":  # of a role of people, from the session in the account
            arn = call["parameters"]["RoleArn"]
            yield Ask("sts:AssumeRole", arn, resource_tags(self.tags.get(arn, {})))
        elif operation != "GetCallerIdentity":  # which needs no permission
            raise KeyError(f"sts:{operation}")

    # --- parts of the checks --------------------------------------------------------------------------------------

    def _pass(self, role: str) -> Ask:
        return Ask("iam:PassRole", self._identity("role", role), {"iam:PassedToService": MACHINE})

    def _volume_key(self, call: Call) -> Iterator[Ask]:
        """What EC2 asks in the caller's name where the account's default key of volumes is one of its own."""
        arn, via = f"arn:aws:kms:{call['region']}:{self.number}:key/own", f"ec2.{call['region']}.amazonaws.com"
        for action in OF_A_VOLUME_KEY:
            yield Ask(f"kms:{action}", arn, {"kms:ViaService": via})
        yield Ask("kms:CreateGrant", arn, {"kms:ViaService": via, "kms:GrantIsForAWSResource": "true"})

    def _identity(self, kind: str, name: str) -> str:
        return f"arn:aws:iam::{self.number}:{kind}{self.path}{name}"

    def _arn(self, call: Call, kind: str, id: str) -> str:
        owner = "" if kind in ("image", "snapshot") else self.number
        return f"arn:aws:ec2:{call['region']}:{owner}:{kind}/{id}"

    def _named(self, parameters: Mapping[str, Any]) -> dict[str, list[str]]:
        named: dict[str, list[str]] = {}
        if "KeyName" in parameters:
            named["key-pair"] = [parameters["KeyName"]]
        for text in texts(parameters):
            for thing in self.associations.get(text, (text,)):
                kind = PREFIXES.get(thing.partition("-")[0]) if "-" in thing else None
                if kind:
                    named.setdefault(kind, []).append(thing)
        return named

    def _learn(self, operation: str, parameters: Call, answer: Call, request_tags_by_type: Mapping[str, Tags]) -> None:
        if operation == "AssociateRouteTable" and "AssociationId" in answer:
            self.associations[answer["AssociationId"]] = (parameters["RouteTableId"], parameters["SubnetId"])
        if operation == "CreateLaunchTemplate" and answer:
            template = answer["LaunchTemplate"]["LaunchTemplateId"]
            self.templates[parameters["LaunchTemplateName"]] = (template, parameters["LaunchTemplateData"])
        before = set(texts(parameters))
        for thing in set(texts(answer)) - before:
            tags = request_tags_by_type.get(PREFIXES.get(thing.partition("-")[0], ""))
            if tags:
                self.tags.setdefault(thing, tags)


_BY_EKS = {"security-group": "aws:eks:cluster-name", "instance": "eks:nodegroup-name"}
"""Type of what EKS makes by itself -> the tag that it then has; of these no call of ours tells the id."""
_OWN_ARN: Mapping[str, tuple[str, ...]] = {
    "CreateLoadBalancer": ("LoadBalancerArn",),
    "CreateTargetGroup": ("TargetGroupArn",),
    "CreateListener": ("ListenerArn",),
    "DeleteLoadBalancer": (),
    "DeleteTargetGroup": (),
    "DeregisterTargets": (),
    "ModifyLoadBalancerAttributes": (),
    "RegisterTargets": (),
}
"""Load balancing action -> the field of its answer with the ARN of the created resource."""


def _network(arn: str) -> str:
    # moto names every load balancer as an application load balancer; ours are network load balancers.
    return arn.replace("/app/", "/net/")


def texts(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)


def tags_of(pairs: Any) -> Tags:
    """A list of tags as a mapping."""
    return {tag["Key"]: tag["Value"] for tag in pairs}


def request_tags(tags: Tags) -> Context:
    """The condition keys for the tags in a request."""
    return {f"aws:RequestTag/{key}": value for key, value in tags.items()}


def tag_keys(operation: str, parameters: Call) -> Context:
    """The condition key for the keys of tags in a call that only changes tags; empty for another call."""
    if "tag" not in operation.lower() or "TagSpecifications" in parameters:
        return {}
    tags = parameters.get("Tags", parameters.get("TagKeys", ()))
    keys = [tag["Key"] if isinstance(tag, Mapping) else str(tag) for tag in tags]
    return {"aws:TagKeys": tuple(keys)} if keys else {}


def resource_tags(tags: Tags) -> Context:
    """The condition keys for the tags of a resource."""
    return {f"aws:ResourceTag/{key}": value for key, value in tags.items()}


def has_no_resource(action: str) -> bool:
    """Whether the action allows only ``*`` as its resource."""
    return action in WITHOUT_RESOURCE or action.startswith(
        ("ec2:Describe", "elasticloadbalancing:Describe", "autoscaling:Describe")
    )
