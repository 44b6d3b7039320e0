"""EKS's clusters: their states, their updates one at a time, their security group and interfaces in EC2."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from moto.ec2.models import ec2_backends
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.compute.interfaces import managed_interface
from local.aws.corrections.eks.tables import DEFAULT_VERSION, EXTENDED, VERSIONS, minor
from local.aws.corrections.eks.things import (
    Cluster,
    Document,
    Eks,
    Update,
    bad_parameter,
    bad_request,
    encoded,
    in_use,
    missing,
    paged,
    player,
)

PLATFORM = "eks.4"
SERVICES = ("172.20.0.0/16", "10.100.0.0/16")
"""Ranges that EKS has for the services of a cluster that names none."""
MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
"""Ways to admit callers. A cluster may only go to a later one."""
SKEW = 3
"""By how many minor versions nodes may be behind."""
CHANGES: Mapping[str, str] = {
    "resourcesVpcConfig": "EndpointAccessUpdate",
    "logging": "LoggingUpdate",
    "accessConfig": "AccessConfigUpdate",
    "upgradePolicy": "UpgradePolicyUpdate",
    "deletionProtection": "DeletionProtectionUpdate",
    "zonalShiftConfig": "ZonalShiftConfigUpdate",
}
"""Field of a cluster's configuration -> the kind of its update."""


_RESERVED = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")))
"""Addresses that nobody has outside, so that no list of who reaches an endpoint takes them."""


class Clusters(Eks):
    """The operations on clusters and their updates."""

    def create_cluster(self, parameters: Mapping[str, Any]) -> Document:
        name, version = parameters["name"], parameters.get("version", DEFAULT_VERSION)
        if name in self.clusters:
            raise in_use(f"Cluster already exists with name: {name}", clusterName=name)
        if version not in VERSIONS:
            raise bad_parameter(f"unsupported Kubernetes version {version}", clusterName=name)
        policy = {"supportType": "EXTENDED", **parameters.get("upgradePolicy", {})}
        if version in EXTENDED and policy["supportType"] == "STANDARD":
            raise bad_parameter(f"Version {version} is not in standard support", clusterName=name)
        self.require_role(parameters["roleArn"], "eks.amazonaws.com")
        vpc, vpc_id = self._vpc(parameters["resourcesVpcConfig"])
        cluster = Cluster(self._new_document(parameters, version, {**vpc, "vpcId": vpc_id}, policy))
        cluster.is_bootstrapped = parameters.get("bootstrapSelfManagedAddons", True)
        cluster.begin("CREATING", "cluster", lambda: self._created(cluster))
        self.clusters[name] = cluster
        self._join_network(cluster)
        self._admit_creator(cluster)
        return {"cluster": cluster.copy()}

    def _new_document(
        self, parameters: Mapping[str, Any], version: str, vpc: Document, policy: Mapping[str, Any]
    ) -> Document:
        access = {"authenticationMode": "CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": True}
        network = {"serviceIpv4Cidr": self._service_range(parameters, vpc["vpcId"]), "ipFamily": "ipv4"}
        return {
            "name": parameters["name"],
            "arn": self.arn("cluster", parameters["name"]),
            "createdAt": pace.moment(),
            "version": version,
            "roleArn": parameters["roleArn"],
            "resourcesVpcConfig": vpc,
            "kubernetesNetworkConfig": {**parameters.get("kubernetesNetworkConfig", {}), **network},
            "logging": parameters.get("logging", {"clusterLogging": []}),
            "platformVersion": PLATFORM,
            "tags": dict(parameters.get("tags", {})),
            "encryptionConfig": parameters.get("encryptionConfig", []),
            "health": {"issues": []},
            "accessConfig": access | parameters.get("accessConfig", {}),
            "upgradePolicy": dict(policy),
            "deletionProtection": parameters.get("deletionProtection", False),
        }

    def _service_range(self, parameters: Mapping[str, Any], vpc_id: str) -> str:
        """The range of the services, which must not be the VPC's."""
        vpc = ipaddress.ip_network(ec2_backends[self.account_id][self.region_name].vpcs[vpc_id].cidr_block)
        asked_for = (parameters.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr")
        ranges = [asked_for] if asked_for else list(SERVICES)
        free = [text for text in ranges if not ipaddress.ip_network(text).overlaps(vpc)]
        if not free:
            raise bad_parameter(f"The service CIDR {ranges[0]} overlaps with the CIDR block {vpc} of the VPC")
        return str(free[0])

    def _admit_creator(self, cluster: Cluster) -> None:
        raise NotImplementedError

    def _vpc(self, asked_for: Mapping[str, Any]) -> tuple[Document, str]:
        subnets = self._subnets(asked_for.get("subnetIds", ()))
        if len({subnet.availability_zone for subnet in subnets}) < 2:
            raise bad_parameter("Subnets specified must be in at least two different AZs")
        config = {
            "subnetIds": [subnet.id for subnet in subnets],
            "securityGroupIds": list(asked_for.get("securityGroupIds", ())),
            "endpointPublicAccess": asked_for.get("endpointPublicAccess", True),
            "endpointPrivateAccess": asked_for.get("endpointPrivateAccess", False),
            "publicAccessCidrs": list(asked_for.get("publicAccessCidrs", ())) or ["0.0.0.0/0"],
        }
        _check_access(config)
        return config, str(subnets[0].vpc_id)

    def _subnets(self, subnet_ids: Sequence[str]) -> list[Any]:
        ec2 = ec2_backends[self.account_id][self.region_name]
        by_id = {subnet.id: subnet for zone in ec2.subnets.values() for subnet in zone.values()}
        absent = [subnet_id for subnet_id in subnet_ids if subnet_id not in by_id]
        if absent:
            raise bad_parameter(f"The subnet ID '{absent[0]}' does not exist")
        return [by_id[subnet_id] for subnet_id in subnet_ids]

    def _join_network(self, cluster: Cluster) -> None:
        """The security group and the interfaces that EKS makes in the caller's network."""
        ec2, config = ec2_backends[self.account_id][self.region_name], cluster.document["resourcesVpcConfig"]
        name = f"eks-cluster-sg-{cluster.name}-{mock_random.get_random_hex(10)}"
        text = "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes"
        tags = {"Name": name, f"kubernetes.io/cluster/{cluster.name}": "owned", "aws:eks:cluster-name": cluster.name}
        group = ec2.create_security_group(name, text, config["vpcId"], tags)
        ec2.authorize_security_group_ingress(group.id, "-1", "-1", "-1", [], source_groups=[{"GroupId": group.id}])
        cluster.group_id = str(group.id)
        for subnet in self._subnets(config["subnetIds"])[:2]:
            cluster.interface_ids.append(managed_interface(ec2, subnet, [group.id], f"Amazon EKS {cluster.name}"))

    def _created(self, cluster: Cluster) -> bool:
        document = cluster.document
        try:
            endpoint = player().begin(self.account_id, self.region_name, document)
        except Exception as error:
            document["health"] = {"issues": [{"code": "InternalFailure", "message": str(error), "resourceIds": []}]}
            return cluster.become("FAILED")
        if endpoint is None:
            cluster.change = lambda: self._created(cluster)
            return False
        document["endpoint"], document["certificateAuthority"] = endpoint[0], {"data": encoded(endpoint[1])}
        document["identity"] = {
            "oidc": {"issuer": f"https://oidc.eks.{self.region_name}.amazonaws.com/id/{mock_random.get_random_hex(32)}"}
        }
        document["resourcesVpcConfig"]["clusterSecurityGroupId"] = cluster.group_id
        return cluster.become("ACTIVE")

    def describe_cluster(self, parameters: Mapping[str, Any]) -> Document:
        return {"cluster": self.cluster(parameters).copy()}

    def list_clusters(self, parameters: Mapping[str, Any]) -> Document:
        names, more = paged(sorted(self.clusters), parameters)
        return {"clusters": names, **more}

    def delete_cluster(self, parameters: Mapping[str, Any]) -> Document:
        cluster = self.cluster(parameters)
        document, name = cluster.document, cluster.name
        if cluster.groups:
            groups = ",".join(sorted(cluster.groups))
            raise in_use("Cluster has nodegroups attached", clusterName=name, nodegroupName=groups)
        if document["deletionProtection"]:
            raise bad_request(f"Cluster {name} has deletion protection", clusterName=name)
        going_on = {"CREATING": "creation", "UPDATING": "an update", "DELETING": "deletion"}.get(document["status"])
        if going_on:
            raise in_use(f"Cannot delete because cluster {name} currently has {going_on} in progress", clusterName=name)
        cluster.begin("DELETING", "cluster deletion", lambda: self._clear(cluster))
        return {"cluster": cluster.copy()}

    def _clear(self, cluster: Cluster) -> bool:
        ec2 = ec2_backends[self.account_id][self.region_name]
        for interface_id in cluster.interface_ids:
            ec2.enis.pop(interface_id, None)
        # AWS leaves the group where an interface still uses it.
        if ec2.get_security_group_from_id(cluster.group_id) is not None and not _used(ec2, cluster.group_id):
            ec2.delete_security_group(group_id=cluster.group_id)
        player().end(self.account_id, self.region_name, cluster.document)
        return True

    def update_cluster_version(self, parameters: Mapping[str, Any]) -> Document:
        cluster = self._updatable(parameters)
        present, wanted_version = cluster.document["version"], parameters["version"]
        if wanted_version not in VERSIONS:
            raise bad_parameter(f"unsupported Kubernetes version {wanted_version}", clusterName=cluster.name)
        if minor(wanted_version) - minor(present) != 1:
            text = f"Unsupported Kubernetes minor version update from {present} to {wanted_version}"
            raise bad_parameter(text, clusterName=cluster.name)
        behind = sorted(
            name
            for name, group in cluster.groups.items()
            if minor(wanted_version) - minor(group.document["version"]) > SKEW
        )
        if behind:
            text = f"Nodegroups {behind} must be updated before cluster version {wanted_version}"
            raise bad_parameter(text, clusterName=cluster.name, nodegroupName=",".join(behind))
        errors = [insight["name"] for insight in self.insights if insight.get("status") == "ERROR"]
        if errors and not parameters.get("force"):
            text = f"Cluster has upgrade insights with errors: {', '.join(errors)}. Use force to override."
            raise bad_request(text, clusterName=cluster.name)

        def change() -> None:
            cluster.document["version"] = wanted_version
            player().update(self.account_id, self.region_name, cluster.document)

        return self._update(cluster, "VersionUpdate", {"Version": wanted_version, "PlatformVersion": PLATFORM}, change)

    def update_cluster_config(self, parameters: Mapping[str, Any]) -> Document:
        cluster = self._updatable(parameters)
        fields = [field for field in CHANGES if parameters.get(field) is not None]
        if len(fields) != 1:
            raise bad_parameter("Only one type of update can be allowed.", clusterName=cluster.name)
        (field,), present = fields, cluster.document[fields[0]]
        changed = parameters[field]
        changed = {**present, **changed} if isinstance(present, dict) else changed
        if changed == present:
            raise bad_parameter("Cluster is already at the desired configuration", clusterName=cluster.name)
        kind = CHANGES[field]
        if field == "resourcesVpcConfig":
            _check_access(changed)
            if "subnetIds" in parameters[field]:
                self._subnets(changed["subnetIds"])
                kind = "VpcConfigUpdate"
        if field == "accessConfig":
            modes = (present["authenticationMode"], changed["authenticationMode"])
            if MODES.index(modes[1]) < MODES.index(modes[0]):
                text = f"Unsupported authentication mode update from {modes[0]} to {modes[1]}"
                raise bad_parameter(text, clusterName=cluster.name)
        if (
            field == "upgradePolicy"
            and changed["supportType"] == "STANDARD"
            and cluster.document["version"] in EXTENDED
        ):
            raise bad_parameter("The cluster's version is in extended support", clusterName=cluster.name)

        def change() -> None:
            cluster.document[field] = changed

        return self._update(cluster, kind, _params(field, changed), change)

    def _updatable(self, parameters: Mapping[str, Any]) -> Cluster:
        cluster = self.cluster(parameters)
        if cluster.document["status"] == "UPDATING":
            raise in_use(f"Cluster {cluster.name} currently has an update in progress", clusterName=cluster.name)
        cluster.require()
        return cluster

    def _update(self, cluster: Cluster, kind: str, params: Mapping[str, Any], change: Any) -> Document:
        def done() -> None:
            change()
            cluster.become("ACTIVE")

        cluster.document["status"] = "UPDATING"
        return {"update": self.begin_update(cluster, kind, params, "cluster update", done).copy()}

    def describe_update(self, parameters: Mapping[str, Any]) -> Document:
        return {"update": self._update_of(parameters).copy()}

    def list_updates(self, parameters: Mapping[str, Any]) -> Document:
        of_part = _part(parameters)
        updates = self.cluster(parameters).updates.values()
        ids = [update.document["id"] for update in updates if update.part == of_part]
        page, more = paged(ids, parameters)
        return {"updateIds": page, **more}

    def _update_of(self, parameters: Mapping[str, Any]) -> Update:
        update = self.cluster(parameters).updates.get(parameters["updateId"])
        if update is None or update.part != _part(parameters):
            raise missing(f"No update found for ID: {parameters['updateId']}")
        return update


def _part(parameters: Mapping[str, Any]) -> tuple[str, str]:
    return parameters.get("nodegroupName") or "", parameters.get("addonName") or ""


def _params(field: str, changed: Any) -> Document:
    if field == "resourcesVpcConfig":
        return {
            "EndpointPublicAccess": changed["endpointPublicAccess"],
            "EndpointPrivateAccess": changed["endpointPrivateAccess"],
            "PublicAccessCidrs": changed["publicAccessCidrs"],
        }
    names = {"accessConfig": "AuthenticationMode", "logging": "ClusterLogging"}
    return {names.get(field, field[0].upper() + field[1:]): changed}


def _check_access(config: Mapping[str, Any]) -> None:
    if not config["endpointPublicAccess"] and not config["endpointPrivateAccess"]:
        raise bad_parameter("Private and public endpoint access cannot be false")
    for cidr in config["publicAccessCidrs"]:
        try:
            network = ipaddress.ip_network(cidr)
        except ValueError:
            raise bad_parameter(f"The following CIDRs are not valid: [{cidr}]") from None
        if any(network.overlaps(reserved) and network.prefixlen for reserved in _RESERVED):
            raise bad_parameter(f"The following CIDRs are not allowed in publicAccessCidrs: [{cidr}]")


def _used(ec2: Any, group_id: str) -> bool:
    groups = (group.id for interface in ec2.enis.values() for group in interface.group_set)
    return group_id in groups
