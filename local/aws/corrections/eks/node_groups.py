"""EKS's node groups: an auto scaling group each, whose machines are instances of EC2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.eks.addons import Addons
from local.aws.corrections.eks.node_templates import (
    DEFAULT_DISK,
    RESERVED,
    SPOT,
    NodeTemplate,
    check_template,
    check_types,
    check_zones,
    image_id,
    launch_template,
)
from local.aws.corrections.eks.scaling_groups import ScalingGroup, scaling_backends
from local.aws.corrections.eks.tables import VERSIONS, minor, release_version
from local.aws.corrections.eks.things import (
    Cluster,
    Document,
    Thing,
    Update,
    bad_parameter,
    in_use,
    missing,
    paged,
)

FAILURE, UNREADY = "AsgInstanceLaunchFailures", "NodeCreationFailure"
CLUSTER_TAG, GROUP_TAG = "eks:cluster-name", "eks:nodegroup-name"
"""Tags of the machines of a group."""


@dataclass
class Rolling:
    """Machines are replaced one after the other; ``done`` is called with whether that succeeded."""

    update: Update
    done: Callable[[bool], None]


@dataclass
class NodeGroup(Thing):
    """A node group and its auto scaling group."""

    scaling: ScalingGroup = field(kw_only=True)
    cluster: Cluster = field(kw_only=True)
    rolling: Rolling | None = None
    told_size: int = 0
    """The desired size that EKS tells: now and then it looks what the auto scaling group has."""
    next_sync: float = 0.0
    patience_until: float = 0.0
    """Until when EKS waits for nodes that are not ready; 0 while it has seen none."""

    def settle(self) -> bool:
        """See ``Thing``; machines first."""
        self._sync()
        self.scaling.settle()
        while self.rolling is not None and self._replace():
            self.scaling.settle()
        if self.document["status"] == "DELETING":
            is_gone = pace.now() >= self.at and not self.scaling.members
            return is_gone and self.change is not None and self.change()
        Thing.settle(self)
        if self.document["status"] in {"ACTIVE", "DEGRADED"}:
            self.document["status"] = "DEGRADED" if self.issues else "ACTIVE"
        self.document["health"] = {"issues": self.issues}
        return False

    def _sync(self) -> None:
        if self.told_size == self.scaling.desired:
            self.next_sync = 0.0
            return
        self.next_sync = self.next_sync or pace.after("size sync")
        if pace.now() >= self.next_sync:
            self.told_size, self.next_sync = self.scaling.desired, 0.0

    @property
    def issues(self) -> list[Document]:
        """Reasons why the group has fewer machines than it should."""
        if self.document["status"] == "CREATE_FAILED" and self._has_unready_nodes:
            ids = sorted(self.scaling.members)
            return [{"code": UNREADY, "message": "Unhealthy nodes in the kubernetes cluster", "resourceIds": ids}]
        if not self.scaling.is_failing:
            return []
        message = self.scaling.activities[-1].get("StatusMessage", "")
        return [{"code": FAILURE, "message": message, "resourceIds": [self.scaling.name]}]

    def created(self) -> bool:
        """A change: the group is there, with as many machines as it should have or not."""
        waiting = any(member.state == "Pending" for member in self.scaling.members.values())
        if waiting:
            self.at, self.change = max(member.at for member in self.scaling.members.values()), self.created
            return False
        if self._has_unready_nodes:
            self.patience_until = self.patience_until or pace.after("join")
            self.at, self.change = self.patience_until, self.created
            return self.become("CREATE_FAILED") if pace.now() > self.patience_until else False
        return self.become("CREATE_FAILED" if self.scaling.is_failing else "ACTIVE")

    @property
    def _has_unready_nodes(self) -> bool:
        return bool(self.scaling.members) and not self.cluster.has_pod_network

    def _replace(self) -> bool:
        """One step of a replacement; whether something was done."""
        scaling, rolling = self.scaling, self.rolling
        if rolling is None or any(member.state == "Pending" for member in scaling.members.values()):
            return False
        old = [member for member in scaling.staying if member.generation < scaling.generation]
        if old and "AZRebalance" in scaling.suspended_processes:
            # By it EKS has new machines where the old ones are; without it the update waits for them in vain.
            scaling.surge, self.rolling = 0, None
            rolling.done(False)
            return False
        leaving = any(not member.stays for member in scaling.members.values())
        if scaling.surge < 0 and not leaving:
            scaling.surge = 0
            return True
        if scaling.is_failing or not (old or leaving):
            scaling.surge, self.rolling = 0, None
            rolling.done(not scaling.is_failing)
            return False
        if not old or leaving:
            return False
        minimal = (self.document.get("updateConfig") or {}).get("updateStrategy") == "MINIMAL"
        if not minimal and not scaling.surge:
            scaling.surge = 1
        else:
            # Where one is taken away first, the next comes once that is gone.
            scaling.surge = -1 if minimal else 0
            scaling.leave(old[0], "in response to an update of its node group")
        return True


class NodeGroups(Addons):
    """The operations on node groups."""

    def create_nodegroup(self, parameters: Mapping[str, Any]) -> Document:
        cluster, name = self.cluster(parameters), parameters["nodegroupName"]
        if name in cluster.groups:
            text = f"NodeGroup already exists with name {name} and cluster name {cluster.name}"
            raise in_use(text, clusterName=cluster.name, nodegroupName=name)
        cluster.require()
        self.require_role(parameters["nodeRole"], "ec2.amazonaws.com")
        scaling = {"minSize": 1, "maxSize": 2, "desiredSize": 2, **parameters.get("scalingConfig", {})}
        check_sizes(scaling)
        subnets = {subnet.id: str(subnet.availability_zone) for subnet in self._subnets(parameters["subnets"])}
        document, data = self._document(cluster, parameters, scaling)
        if document["capacityType"] != RESERVED:
            kinds = document.get("instanceTypes") or (data["InstanceType"],)
            check_zones(tuple(kinds), subnets.values(), self.region_name)
        group = self._begin(cluster, document, self._template(cluster, document, data), subnets)
        group.begin("CREATING", "node group", group.created)
        cluster.groups[name] = group
        has_entries = cluster.document["accessConfig"]["authenticationMode"] != "CONFIG_MAP"
        if has_entries and parameters["nodeRole"] not in cluster.entries:
            self.admit(cluster, parameters["nodeRole"], "EC2_LINUX")
        group.scaling.settle()
        return {"nodegroup": group.copy()}

    def _document(
        self, cluster: Cluster, parameters: Mapping[str, Any], scaling: Mapping[str, int]
    ) -> tuple[Document, Document]:
        """The new group's document, and the data of its launch template."""
        reference: Document = {}
        data: Document = {}
        if "launchTemplate" in parameters:
            reference, data = launch_template(self.account_id, self.region_name, parameters["launchTemplate"])
        check_template(parameters, data)
        kinds = check_types(parameters, data, self.region_name)
        version = parameters.get("version", cluster.document["version"])
        if version not in VERSIONS or not 0 <= minor(cluster.document["version"]) - minor(version) <= 3:
            raise bad_parameter(f"Requested Nodegroup version {version} is not supported by the cluster's version")
        custom, name, now = "ImageId" in data, parameters["nodegroupName"], pace.moment()
        identity = str(mock_random.uuid4())
        document = {
            "nodegroupName": name,
            "nodegroupArn": self.arn("nodegroup", cluster.name, name, identity),
            "clusterName": cluster.name,
            "version": version,
            "releaseVersion": data["ImageId"] if custom else parameters.get("releaseVersion", release_version(version)),
            "createdAt": now,
            "modifiedAt": now,
            "capacityType": parameters.get("capacityType", "ON_DEMAND"),
            "scalingConfig": dict(scaling),
            "subnets": list(parameters["subnets"]),
            "amiType": "CUSTOM" if custom else parameters.get("amiType", "AL2023_x86_64_STANDARD"),
            "nodeRole": parameters["nodeRole"],
            "labels": dict(parameters.get("labels", {})),
            "taints": [dict(taint) for taint in parameters.get("taints", ())],
            "resources": {"autoScalingGroups": [{"name": f"eks-{name}-{identity}"}]},
            "health": {"issues": []},
            "updateConfig": {"maxUnavailable": 1} | parameters.get("updateConfig", {}),
            "tags": dict(parameters.get("tags", {})),
        }
        if reference:
            document["launchTemplate"] = reference
        else:
            document["diskSize"] = parameters.get("diskSize", DEFAULT_DISK)
        if not data.get("InstanceType"):
            document["instanceTypes"] = list(kinds)
        return document, data

    def _template(self, cluster: Cluster, document: Document, data: Mapping[str, Any]) -> NodeTemplate:
        reference = document.get("launchTemplate") or {}
        group_ids = list(data.get("SecurityGroupIds", ()))
        for interface in data.get("NetworkInterfaces", ()):
            group_ids += [group for group in interface.get("Groups", ()) if group not in group_ids]
        tags = {
            CLUSTER_TAG: cluster.name,
            GROUP_TAG: document["nodegroupName"],
            "aws:eks:cluster-name": cluster.name,
            "aws:autoscaling:groupName": document["resources"]["autoScalingGroups"][0]["name"],
            f"kubernetes.io/cluster/{cluster.name}": "owned",
        }
        return NodeTemplate(
            self.account_id,
            self.region_name,
            tuple(document.get("instanceTypes") or (data["InstanceType"],)),
            data.get("ImageId") or image_id(document["amiType"], document["releaseVersion"], self.region_name),
            document["capacityType"],
            document.get("diskSize", DEFAULT_DISK),
            tuple(group_ids) or (cluster.group_id,),
            tags,
            {"LaunchTemplateId": reference["id"], "Version": reference["version"]} if reference else {},
            data,
        )

    def _begin(
        self, cluster: Cluster, document: Document, template: NodeTemplate, subnets: Mapping[str, str]
    ) -> NodeGroup:
        name, sizes = document["resources"]["autoScalingGroups"][0]["name"], document["scalingConfig"]
        tags = {key: value for key, value in template.tags.items() if not key.startswith("aws:")}
        tags |= {"k8s.io/cluster-autoscaler/enabled": "true", f"k8s.io/cluster-autoscaler/{cluster.name}": "owned"}
        scaling = ScalingGroup(
            name,
            self.region_name,
            self.account_id,
            sizes["minSize"],
            sizes["maxSize"],
            sizes["desiredSize"],
            list(subnets),
            dict(subnets),
            template.launch,
            "Spot" if document["capacityType"] == SPOT else "On-Demand",
            tags=tags,
        )
        scaling_backends[self.account_id][self.region_name].groups[name] = scaling
        return NodeGroup(document, scaling=scaling, cluster=cluster, told_size=sizes["desiredSize"])

    def _group(self, parameters: Mapping[str, Any]) -> tuple[Cluster, NodeGroup]:
        cluster, name = self.cluster(parameters), parameters["nodegroupName"]
        group = cluster.groups.get(name)
        if not isinstance(group, NodeGroup):
            text = f"No node group found for name: {name}."
            raise missing(text, clusterName=cluster.name, nodegroupName=name)
        return cluster, group

    def describe_nodegroup(self, parameters: Mapping[str, Any]) -> Document:
        _, group = self._group(parameters)
        document = group.copy()
        scaling = group.scaling
        # It shows what the auto scaling group has, also when somebody else has changed that, but late.
        document["scalingConfig"] = {
            "minSize": scaling.minimum,
            "maxSize": scaling.maximum,
            "desiredSize": group.told_size,
        }
        return {"nodegroup": document}

    def list_nodegroups(self, parameters: Mapping[str, Any]) -> Document:
        page, more = paged(sorted(self.cluster(parameters).groups), parameters)
        return {"nodegroups": page, **more}

    def delete_nodegroup(self, parameters: Mapping[str, Any]) -> Document:
        cluster, group = self._group(parameters)
        name, scaling = group.document["nodegroupName"], group.scaling
        if group.document["status"] in {"UPDATING", "DELETING"}:
            text = f"Nodegroup {name} cannot be deleted while it is {group.document['status']}"
            raise in_use(text, clusterName=cluster.name, nodegroupName=name)
        scaling.minimum = scaling.desired = 0
        for member in scaling.members.values():
            member.is_protected = False

        def end() -> bool:
            scaling_backends[self.account_id][self.region_name].groups.pop(scaling.name, None)
            return True

        group.begin("DELETING", "node group deletion", end)
        scaling.settle()
        return {"nodegroup": group.copy()}


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Raises ``ServiceRefusal`` unless the sizes of a group go together."""
    minimum, maximum, desired = sizes["minSize"], sizes["maxSize"], sizes["desiredSize"]
    if minimum > maximum:
        raise bad_parameter(f"Minimum capacity {minimum} can't be greater than maximum size {maximum}")
    if desired > maximum:
        raise bad_parameter(f"desired capacity {desired} can't be greater than max size {maximum}")
    if desired < minimum:
        raise bad_parameter(f"Minimum capacity {minimum} can't be greater than desired size {desired}")
