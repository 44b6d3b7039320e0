"""Things that stand in an account for a cluster on EKS, in the words of the original's resources.

Each thing has the fields that the original sets (``forProvider``). A reference is a set of tokens that say what it
leads to: ``vpc``, ``role:node``, ``subnet:private:us-east-1a``. docs/eks.md has the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.providers.clouds.aws import tags

Fields = dict[str, Any]
EVERYWHERE = "0.0.0.0/0"
PEOPLE = ("viewer-role", "operator-role", "admin-role")
"""Ends of the names of roles that are ours besides: people get their tokens by them."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing of a kind of the original's."""

    kind: str
    fields: Fields


def tokens(*names: str) -> frozenset[str]:
    """A reference to these."""
    return frozenset(names)


class Account:
    """One cluster in an account. ``client`` makes clients of a service in the cluster's region."""

    def __init__(self, client: Callable[[str], Any], region: str, name: str, kubernetes: Callable[[str], Any]) -> None:
        self._ec2, self._eks, self._efs, self._iam = (client(name) for name in ("ec2", "eks", "efs", "iam"))
        self._region, self._name, self._kubernetes = region, name, kubernetes
        self._cluster = self._eks.describe_cluster(name=name)["cluster"]
        self._own = self._cluster["tags"][tags.RESOURCE]
        self._vpc = self._cluster["resourcesVpcConfig"]["vpcId"]
        self._inside = [{"Name": "vpc-id", "Values": [self._vpc]}]
        self._subnets = self._ec2.describe_subnets(Filters=self._inside)["Subnets"]
        self._groups = self._ec2.describe_security_groups(Filters=self._inside)["SecurityGroups"]
        self._tokens = dict(self._named_things())

    def things(self) -> Iterator[Thing]:
        """Everything that the original has a kind for."""
        for kind, read in (
            ("VPC", self._vpcs),
            ("Subnet", self._subnet_fields),
            ("InternetGateway", self._internet_gateways),
            ("EIP", self._addresses),
            ("NATGateway", self._nat_gateways),
            ("RouteTable", self._route_tables),
            ("Route", self._routes),
            ("RouteTableAssociation", self._associations),
            ("SecurityGroup", self._security_groups),
            ("SecurityGroupIngressRule", lambda: self._rules("IpPermissions")),
            ("SecurityGroupEgressRule", lambda: self._rules("IpPermissionsEgress")),
            ("Role", self._roles),
            ("RolePolicyAttachment", self._attachments),
            ("Cluster", self._clusters),
            ("NodeGroup", self._node_groups),
            ("LaunchTemplate", self._templates),
            ("Addon", self._addons),
            ("PodIdentityAssociation", self._pod_identities),
            ("FileSystem", self._file_systems),
            ("MountTarget", self._mount_targets),
            ("Object", self._storage_classes),
        ):
            for fields in read():
                region_field = {} if kind in ("Role", "RolePolicyAttachment", "Object") else {"region": self._region}
                yield Thing(kind, {**region_field, **fields})

    # --- what references lead to --------------------------------------------------------------------------------------

    def _named_things(self) -> Iterator[tuple[str, str]]:
        yield self._vpc, "vpc"
        for subnet in self._subnets:
            tier = "public" if subnet["MapPublicIpOnLaunch"] else "private"
            yield subnet["SubnetId"], f"subnet:{tier}:{subnet['AvailabilityZone']}"
        own = self._cluster["resourcesVpcConfig"].get("clusterSecurityGroupId", "")
        for group in self._groups:
            yield group["GroupId"], "sg:cluster" if group["GroupId"] == own else f"sg:{group['GroupName'][-3:]}"
        for role in self._cluster_roles():
            yield role["Arn"], f"role:{self._use(role)}"

    def _cluster_roles(self) -> list[Fields]:
        pages = self._iam.get_paginator("list_roles").paginate()
        roles = [role for page in pages for role in page["Roles"] if role["RoleName"].endswith("-role")]
        tagged = [
            role
            for role in roles
            if self._own in {tag["Value"] for tag in self._iam.list_role_tags(RoleName=role["RoleName"])["Tags"]}
        ]
        return [role for role in tagged if not role["RoleName"].endswith(PEOPLE)]

    @staticmethod
    def _use(role: Fields) -> str:
        document = role["AssumeRolePolicyDocument"]
        document = json.loads(document) if isinstance(document, str) else document
        services = {"eks.amazonaws.com": "cluster", "ec2.amazonaws.com": "node", "pods.eks.amazonaws.com": "efs-csi"}
        return services[document["Statement"][0]["Principal"]["Service"]]

    def _leads(self, ids: Sequence[str]) -> frozenset[str]:
        return frozenset(self._tokens.get(vendor_id, vendor_id) for vendor_id in ids)

    # --- network ------------------------------------------------------------------------------------------------------

    def _vpcs(self) -> Iterator[Fields]:
        (vpc,) = self._ec2.describe_vpcs(VpcIds=[self._vpc])["Vpcs"]
        attributes = {
            name: self._ec2.describe_vpc_attribute(VpcId=self._vpc, Attribute=name)[f"E{name[1:]}"]["Value"]
            for name in ("enableDnsHostnames", "enableDnsSupport")
        }
        yield {"cidrBlock": vpc["CidrBlock"], **attributes}

    def _subnet_fields(self) -> Iterator[Fields]:
        for subnet in self._subnets:
            marks = {tag["Key"]: tag["Value"] for tag in subnet["Tags"]}
            yield {
                "availabilityZone": subnet["AvailabilityZone"],
                "cidrBlock": subnet["CidrBlock"],
                "mapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
                "tags": marks,
                "vpcIdSelector": tokens("vpc"),
            }

    def _internet_gateways(self) -> Iterator[Fields]:
        filters = [{"Name": "attachment.vpc-id", "Values": [self._vpc]}]
        for _ in self._ec2.describe_internet_gateways(Filters=filters)["InternetGateways"]:
            yield {"vpcIdSelector": tokens("vpc")}

    def _gateways(self) -> list[Fields]:
        return [
            gateway
            for gateway in self._ec2.describe_nat_gateways(Filters=self._inside)["NatGateways"]
            if gateway["State"] != "deleted"
        ]

    def _addresses(self) -> Iterator[Fields]:
        own = {address["AllocationId"] for gateway in self._gateways() for address in gateway["NatGatewayAddresses"]}
        for address in self._ec2.describe_addresses()["Addresses"]:
            if address["AllocationId"] in own:
                yield {"domain": address["Domain"]}

    def _nat_gateways(self) -> Iterator[Fields]:
        for gateway in self._gateways():
            yield {"allocationIdSelector": tokens("eip"), "subnetIdSelector": self._leads([gateway["SubnetId"]])}

    def _tables(self) -> list[tuple[str, Fields]]:
        """Our route tables with their tier; a VPC's main one is AWS's own."""
        tables = self._ec2.describe_route_tables(Filters=self._inside)["RouteTables"]
        own = [table for table in tables if not any(link.get("Main") for link in table["Associations"])]
        return [("public" if any("igw-" in str(r) for r in table["Routes"]) else "private", table) for table in own]

    def _route_tables(self) -> Iterator[Fields]:
        for _ in self._tables():
            yield {"vpcIdSelector": tokens("vpc")}

    def _routes(self) -> Iterator[Fields]:
        for tier, table in self._tables():
            for route in table["Routes"]:
                if route.get("GatewayId") == "local":
                    continue
                target = {"gatewayIdSelector": tokens("igw")} if tier == "public" else {}
                target |= {"natGatewayIdSelector": tokens("nat")} if route.get("NatGatewayId") else {}
                cidr = route["DestinationCidrBlock"]
                yield {"destinationCidrBlock": cidr, **target, "routeTableIdSelector": tokens(f"rt:{tier}")}

    def _associations(self) -> Iterator[Fields]:
        for tier, table in self._tables():
            for link in table["Associations"]:
                subnet = self._leads([link["SubnetId"]])
                yield {"routeTableIdSelector": tokens(f"rt:{tier}"), "subnetIdSelector": subnet}

    def _made_groups(self) -> list[Fields]:
        """Without the VPC's default group and the one that EKS makes for the cluster."""
        own = self._cluster["resourcesVpcConfig"].get("clusterSecurityGroupId")
        return [group for group in self._groups if group["GroupName"] != "default" and group["GroupId"] != own]

    def _security_groups(self) -> Iterator[Fields]:
        for group in self._made_groups():
            yield {
                "name": group["GroupName"],
                "description": group["Description"],
                "vpcIdSelector": tokens("vpc"),
            }

    def _rules(self, side: str) -> Iterator[Fields]:
        """The rules that somebody has made: a new group lets everything out."""
        for group in self._made_groups():
            of_group = {"securityGroupIdSelector": self._leads([group["GroupId"]])}
            for rule in group[side]:
                ports = {"fromPort": rule["FromPort"], "toPort": rule["ToPort"]} if rule.get("FromPort") else {}
                common = {"ipProtocol": rule["IpProtocol"], **ports, **of_group}
                for pair in rule["UserIdGroupPairs"]:
                    yield {**common, "referencedSecurityGroupIdSelector": self._leads([pair["GroupId"]])}
                for ip_range in rule["IpRanges"]:
                    if side == "IpPermissions" or ip_range["CidrIp"] != EVERYWHERE:
                        yield {**common, "cidrIpv4": ip_range["CidrIp"]}

    # --- roles --------------------------------------------------------------------------------------------------------

    def _roles(self) -> Iterator[Fields]:
        for role in self._cluster_roles():
            yield {"assumeRolePolicy": _policy(role["AssumeRolePolicyDocument"])}

    def _attachments(self) -> Iterator[Fields]:
        for role in self._cluster_roles():
            attached = self._iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
            for policy in attached:
                yield {"policyArn": policy["PolicyArn"], "roleSelector": tokens(f"role:{self._use(role)}")}

    # --- EKS ----------------------------------------------------------------------------------------------------------

    def _clusters(self) -> Iterator[Fields]:
        vpc_config = self._cluster["resourcesVpcConfig"]
        yield {
            "accessConfig": self._cluster["accessConfig"],
            "roleArnSelector": self._leads([self._cluster["roleArn"]]),
            "version": self._cluster["version"],
            "vpcConfig": {
                "endpointPrivateAccess": vpc_config["endpointPrivateAccess"],
                "endpointPublicAccess": vpc_config["endpointPublicAccess"],
                "subnetIdSelector": self._leads(vpc_config["subnetIds"]),
            },
        }

    def _node_groups(self) -> Iterator[Fields]:
        for name in self._eks.list_nodegroups(clusterName=self._name)["nodegroups"]:
            group = self._eks.describe_nodegroup(clusterName=self._name, nodegroupName=name)["nodegroup"]
            subnets, template, disk = self._leads(group["subnets"]), *self._template_of(group)
            taints = [
                {k: taint[k] for k in ("effect", "key", "value") if k in taint} for taint in group.get("taints", ())
            ]
            own = {} if template else {"instanceTypes": group["instanceTypes"], "diskSize": disk}
            yield {
                "amiType": group["amiType"],
                "capacityType": group["capacityType"],
                "clusterNameSelector": tokens("cluster"),
                "labels": {k: v for k, v in group["labels"].items() if k.startswith("modelplane.ai/")},
                "launchTemplate": template,
                "nodeRoleArnSelector": self._leads([group["nodeRole"]]),
                "scalingConfig": group["scalingConfig"],
                "subnetIdSelector": subnets,
                "subnetIdRefs": subnets,
                "taint": taints,
                **own,
            }

    def _template_of(self, group: Fields) -> tuple[Fields | None, int | None]:
        """The template, and the disk that it says. EKS tells the number of the version that it was given as the latest.
        One that names no type only marks and encrypts what Modelplane leaves to EKS: it is none of Modelplane's.
        """
        template = group["launchTemplate"]
        data = self._data(template["id"])
        if "instanceType" not in data:
            return None, int(data["blockDeviceMappings"][0]["ebs"]["volumeSize"])
        (described,) = self._ec2.describe_launch_templates(LaunchTemplateIds=[template["id"]])["LaunchTemplates"]
        is_latest = str(described["LatestVersionNumber"]) == str(template["version"])
        return {**template, "version": "$Latest" if is_latest else template["version"]}, None

    def _data(self, template_id: str) -> Fields:
        answer = self._ec2.describe_launch_template_versions(LaunchTemplateId=template_id, Versions=["$Latest"])
        data: Fields = _camel(answer["LaunchTemplateVersions"][0]["LaunchTemplateData"])
        return data

    def _templates(self) -> Iterator[Fields]:
        for template in self._ec2.describe_launch_templates()["LaunchTemplates"]:
            marks = {tag["Value"] for tag in template.get("Tags", ())}
            if self._own not in marks:
                continue
            data = self._data(template["LaunchTemplateId"])
            if "instanceType" not in data:
                continue
            for interface in data.get("networkInterfaces", ()):
                interface["securityGroups"] = [self._tokens[group] for group in interface.pop("groups")]
            yield {"name": template["LaunchTemplateName"], **data}

    def _addons(self) -> Iterator[Fields]:
        for name in self._eks.list_addons(clusterName=self._name)["addons"]:
            yield {"addonName": name, "clusterNameSelector": tokens("cluster")}

    def _pod_identities(self) -> Iterator[Fields]:
        listing = self._eks.list_pod_identity_associations(clusterName=self._name)["associations"]
        for entry in listing:
            association = self._eks.describe_pod_identity_association(
                clusterName=self._name, associationId=entry["associationId"]
            )["association"]
            yield {
                "clusterNameSelector": tokens("cluster"),
                "namespace": association["namespace"],
                "serviceAccount": association["serviceAccount"],
                "roleArnSelector": self._leads([association["roleArn"]]),
            }

    # --- files --------------------------------------------------------------------------------------------------------

    def _systems(self) -> list[Fields]:
        systems = self._efs.describe_file_systems()["FileSystems"]
        return [system for system in systems if self._own in {tag["Value"] for tag in system["Tags"]}]

    def _file_systems(self) -> Iterator[Fields]:
        for system in self._systems():
            yield {"encrypted": system["Encrypted"], "throughputMode": system["ThroughputMode"]}

    def _mount_targets(self) -> Iterator[Fields]:
        for system in self._systems():
            targets = self._efs.describe_mount_targets(FileSystemId=system["FileSystemId"])["MountTargets"]
            for target in targets:
                groups = self._efs.describe_mount_target_security_groups(MountTargetId=target["MountTargetId"])
                yield {
                    "fileSystemIdSelector": tokens("filesystem"),
                    "securityGroupsSelector": self._leads(groups["SecurityGroups"]),
                    "subnetIdRef": self._leads([target["SubnetId"]]),
                }

    def _storage_classes(self) -> Iterator[Fields]:
        systems = [system["FileSystemId"] for system in self._systems()]
        for document in self._kubernetes("/apis/storage.k8s.io/v1/storageclasses")["items"]:
            parameters = dict(document.get("parameters", {}))
            if parameters.get("fileSystemId") in systems:
                parameters["fileSystemId"] = "filesystem"
            metadata = {"name": document["metadata"]["name"]}
            kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
            yield {"manifest": {**document, **kind, "metadata": metadata, "parameters": parameters}}


def _policy(document: Any) -> Any:
    return json.loads(document) if isinstance(document, str) else document


def _camel(value: Any) -> Any:
    """A document of EC2 with the names that begin with a small letter."""
    if isinstance(value, Mapping):
        return {name[0].lower() + name[1:]: _camel(inner) for name, inner in value.items()}
    return [_camel(inner) for inner in value] if isinstance(value, list) else value
