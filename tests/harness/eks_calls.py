"""Recorded calls of EKS, EFS and EC2 Auto Scaling as the permission checks that AWS would do; see ``calls``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.harness.policies import Ask

Call = Mapping[str, Any]
Tags = dict[str, str]
Context = dict[str, str | tuple[str, ...]]

EKS, NODE_GROUPS, PODS = "eks.amazonaws.com", "eks-nodegroup.amazonaws.com", "pods.eks.amazonaws.com"
SCALING, FILES = "autoscaling.amazonaws.com", "elasticfilesystem.amazonaws.com"
LINKED = {
    EKS: "AWSServiceRoleForAmazonEKS",
    NODE_GROUPS: "AWSServiceRoleForAmazonEKSNodegroup",
    SCALING: "AWSServiceRoleForAutoScaling",
    FILES: "AWSServiceRoleForAmazonElasticFileSystem",
}
"""Service -> its own role, which the first call of an account makes in the caller's name."""
EVERYWHERE = frozenset({"DescribeAddonVersions", "ListClusters"})
OF_CLUSTER = frozenset(
    {
        "DescribeCluster",
        "ListAccessEntries",
        "ListAddons",
        "ListInsights",
        "ListNodegroups",
        "ListPodIdentityAssociations",
        "DeleteCluster",
        "UpdateClusterConfig",
        "UpdateClusterVersion",
    }
)
CREATED = {
    "CreateAccessEntry": ("access-entry", "principalArn"),
    "CreateAddon": ("addon", "addonName"),
    "CreateNodegroup": ("nodegroup", "nodegroupName"),
    "CreatePodIdentityAssociation": ("podidentityassociation", "serviceAccount"),
}
"""Operation -> the type that it makes in a cluster, and what names it."""
NAMED = {
    "nodegroupName": "nodegroup",
    "addonName": "addon",
    "principalArn": "access-entry",
    "associationId": "podidentityassociation",
}
VERSIONS = "ec2:DescribeLaunchTemplateVersions"
VIA = {"aws:ViaAWSService": "true"}


class ManagedThings:
    """The checks of these services in an account. ``tags`` are those of all things by ARN or id, ``node_tags``
    those of a type of a group's machine, ``templates`` the launch templates by name with their ids and data."""

    def __init__(
        self,
        number: str,
        tags: dict[str, Tags],
        node_tags: dict[str, Tags],
        templates: Mapping[str, tuple[str, Call]],
        prefixes: Mapping[str, str],
    ) -> None:
        self.number, self.tags, self.node_tags = number, tags, node_tags
        self.templates, self.prefixes = templates, prefixes
        self.latest_group = "none"
        self.targets: dict[str, str] = {}
        """Mount target -> its file system."""

    def kinds(self) -> Mapping[str, Callable[[Call], Iterator[Ask]]]:
        """Service -> its checks."""
        return {"EKS": self.eks, "EFS": self.efs, "Auto Scaling": self.scaling}

    # --- EKS ----------------------------------------------------------------------------------------------------------

    def eks(self, call: Call) -> Iterator[Ask]:
        """The checks of one call of EKS."""
        operation, parameters = call["operation"], call["parameters"]
        action = f"eks:{operation}"
        if operation in EVERYWHERE:
            yield Ask(action, "*")
            return
        if operation in ("TagResource", "UntagResource"):
            arn = self._of_arn(parameters["resourceArn"])
            keys = parameters.get("tagKeys") or tuple(parameters.get("tags", ()))
            requested = request_tags(parameters.get("tags", {}))
            yield Ask(action, arn, {**self._tags_of(arn), **requested, "aws:TagKeys": tuple(keys)})
            return
        cluster = self._eks_arn(call, "cluster", parameters.get("clusterName") or parameters["name"])
        if operation == "CreateCluster":
            yield from self._new_cluster(call, cluster)
        elif operation in CREATED:
            yield from self._new_in_cluster(call, cluster)
        else:
            arn = cluster if operation in OF_CLUSTER else self._named(call) or cluster
            yield Ask(action, arn, self._tags_of(arn))
            if operation == "UpdateNodegroupVersion":
                # Of a group that has a launch template, which the call need not name.
                yield Ask(VERSIONS, "*")
        group = (
            (call.get("answer") or {}).get("cluster", {}).get("resourcesVpcConfig", {}).get("clusterSecurityGroupId")
        )
        if group:
            self.tags.setdefault(group, {"aws:eks:cluster-name": cluster.rpartition("/")[2]})

    def _new_cluster(self, call: Call, arn: str) -> Iterator[Ask]:
        parameters = call["parameters"]
        requested = request_tags(parameters["tags"])
        yield Ask("eks:CreateCluster", arn, requested)
        yield Ask("eks:TagResource", arn, {**requested, "aws:TagKeys": tuple(parameters["tags"])})
        yield pass_role(parameters["roleArn"], EKS)
        yield self._linked(EKS)
        self._remember(call, arn, parameters["tags"])

    def _new_in_cluster(self, call: Call, cluster: str) -> Iterator[Ask]:
        operation, parameters = call["operation"], call["parameters"]
        kind, name = CREATED[operation]
        requested = request_tags(parameters["tags"])
        yield Ask(f"eks:{operation}", cluster, {**requested, **self._tags_of(cluster)})
        own = parameters[name]
        if operation == "CreatePodIdentityAssociation":
            own = (call.get("answer") or {}).get("association", {}).get("associationId", "new")
            yield pass_role(parameters["roleArn"], PODS)
            yield Ask("iam:GetRole", parameters["roleArn"])
        arn = self._eks_arn(call, kind, parameters["clusterName"], own)
        yield Ask("eks:TagResource", arn, {**requested, "aws:TagKeys": tuple(parameters["tags"])})
        if operation == "CreateNodegroup":
            yield from self._machines_of_group(call)
        self._remember(call, arn, parameters["tags"])

    def _machines_of_group(self, call: Call) -> Iterator[Ask]:
        parameters = call["parameters"]
        yield pass_role(parameters["nodeRole"], EKS)
        yield self._linked(NODE_GROUPS)
        yield self._linked(SCALING)
        # Before an account's first group its role is not there, and IAM asks for a name without a path.
        linked = self._linked(NODE_GROUPS).resource
        yield Ask("iam:GetRole", linked)
        yield Ask("iam:GetRole", f"arn:aws:iam::{self.number}:role/{LINKED[NODE_GROUPS]}")
        yield Ask("iam:GetRole", parameters["nodeRole"])
        yield Ask("iam:ListAttachedRolePolicies", parameters["nodeRole"])
        template = parameters.get("launchTemplate", {}).get("name")
        if not template:
            return
        yield Ask(VERSIONS, "*")
        template_id, data = self.templates[template]
        action = "ec2:RunInstances"
        yield Ask(action, self._ec2_arn(call, "launch-template", template_id), self._tags_of(template_id))
        used = [*parameters["subnets"], *(g for i in data.get("NetworkInterfaces", ()) for g in i.get("Groups", ()))]
        for thing in dict.fromkeys(used):
            yield Ask(action, self._ec2_arn(call, self.prefixes[thing.partition("-")[0]], thing), self._tags_of(thing))
        reservation = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        if reservation:
            yield Ask(action, self._ec2_arn(call, "capacity-reservation", reservation["CapacityReservationId"]))
        for specification in data["TagSpecifications"]:
            tags = {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
            arn = self._ec2_arn(call, specification["ResourceType"], "new")
            self.node_tags[specification["ResourceType"]] = tags
            yield Ask(action, arn, request_tags(tags))
            yield Ask("ec2:CreateTags", arn, {**request_tags(tags), "ec2:CreateAction": "RunInstances"})

    def _named(self, call: Call) -> str:
        parameters = call["parameters"]
        for name, kind in NAMED.items():
            if parameters.get(name):
                cluster = parameters.get("clusterName") or parameters["name"]
                return self._eks_arn(call, kind, cluster, parameters[name])
        return ""

    def _of_arn(self, arn: str) -> str:
        """The ARN as the checks name the thing: without the id at its end that EKS makes."""
        parts = arn.split(":", 5)
        kind, _, path = parts[5].partition("/")
        if kind in ("nodegroup", "addon"):
            path = path.rpartition("/")[0]
        if kind == "access-entry":
            cluster, *place = path.split("/")
            own = "/".join(place[2:-1])
            matches = [thing for thing in self.tags if f":access-entry/{cluster}/" in thing and thing.endswith(own)]
            return matches[0] if matches else arn
        return ":".join([*parts[:5], f"{kind}/{path}"])

    # --- EFS ----------------------------------------------------------------------------------------------------------

    def efs(self, call: Call) -> Iterator[Ask]:
        """The checks of one call of EFS."""
        operation, parameters, answer = call["operation"], call["parameters"], call.get("answer") or {}
        action = f"elasticfilesystem:{operation}"
        own = (
            parameters.get("FileSystemId")
            or parameters.get("ResourceId")
            or self.targets.get(parameters.get("MountTargetId", ""), "any")
        )
        arn = self._file_system(call, own)
        if operation == "CreateFileSystem":
            tags = {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
            arn = self._file_system(call, answer.get("FileSystemId", "new"))
            yield Ask(action, arn, request_tags(tags))
            create = {"elasticfilesystem:CreateAction": operation, "aws:TagKeys": tuple(tags)}
            yield Ask("elasticfilesystem:TagResource", arn, {**request_tags(tags), **create})
            yield self._linked(FILES)
            self._remember(call, arn, tags)
            return
        context = self._tags_of(arn)
        if operation in ("TagResource", "UntagResource"):
            keys = parameters.get("TagKeys") or [tag["Key"] for tag in parameters["Tags"]]
            context = {**context, "aws:TagKeys": tuple(keys)}
        yield Ask(action, arn, context)
        interface = self._ec2_arn(call, "network-interface", "new")
        if operation == "CreateMountTarget":
            self.targets[answer.get("MountTargetId", "new")] = own
            yield Ask("ec2:CreateNetworkInterface", interface, VIA)
            for kind, thing in (
                ("subnet", parameters["SubnetId"]),
                ("security-group", parameters["SecurityGroups"][0]),
            ):
                yield Ask(
                    "ec2:CreateNetworkInterface", self._ec2_arn(call, kind, thing), {**VIA, **self._tags_of(thing)}
                )
        if operation == "DeleteMountTarget":
            yield Ask("ec2:DeleteNetworkInterface", interface, VIA)

    # --- EC2 Auto Scaling ---------------------------------------------------------------------------------------------

    def scaling(self, call: Call) -> Iterator[Ask]:
        """The checks of one call of EC2 Auto Scaling."""
        operation, parameters = call["operation"], call["parameters"]
        action = f"autoscaling:{operation}"
        if operation.startswith("Describe"):
            yield Ask(action, "*")
            return
        if operation == "CreateOrUpdateTags":
            tags = {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
            name = parameters["Tags"][0]["ResourceId"]
            # EKS has made the group, with tags of its own.
            self.tags.setdefault(name, {"eks:nodegroup-name": "a", "eks:cluster-name": "b"})
            yield Ask(action, self._scaling_arn(call, name), {**request_tags(tags), **self._tags_of(name)})
            self.tags[name] |= tags
            self.latest_group = name
            return
        # A call for a machine does not name its group, which is one of ours as any is that we have marked.
        name = parameters.get("AutoScalingGroupName", self.latest_group)
        yield Ask(action, self._scaling_arn(call, name), self._tags_of(name))

    # --- parts --------------------------------------------------------------------------------------------------------

    def _remember(self, call: Call, arn: str, tags: Tags) -> None:
        if not call.get("error"):
            self.tags[arn] = dict(tags)

    def _tags_of(self, thing: str) -> Context:
        return {f"aws:ResourceTag/{key}": value for key, value in self.tags.get(thing, {}).items()}

    def _linked(self, service: str) -> Ask:
        arn = f"arn:aws:iam::{self.number}:role/aws-service-role/{service}/{LINKED[service]}"
        return Ask("iam:CreateServiceLinkedRole", arn, {"iam:AWSServiceName": service})

    def _eks_arn(self, call: Call, kind: str, *names: str) -> str:
        return f"arn:aws:eks:{call['region']}:{self.number}:{kind}/{'/'.join(names)}"

    def _file_system(self, call: Call, name: str) -> str:
        return f"arn:aws:elasticfilesystem:{call['region']}:{self.number}:file-system/{name}"

    def _ec2_arn(self, call: Call, kind: str, name: str) -> str:
        return f"arn:aws:ec2:{call['region']}:{self.number}:{kind}/{name}"

    def _scaling_arn(self, call: Call, name: str) -> str:
        return f"arn:aws:autoscaling:{call['region']}:{self.number}:autoScalingGroup:1:autoScalingGroupName/{name}"


def request_tags(tags: Mapping[str, str]) -> Context:
    """The condition keys for the tags in a request."""
    return {f"aws:RequestTag/{key}": value for key, value in tags.items()}


def pass_role(arn: str, service: str) -> Ask:
    """That a role is handed to a service."""
    return Ask("iam:PassRole", arn, {"iam:PassedToService": service})
