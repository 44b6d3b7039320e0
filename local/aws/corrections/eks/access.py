"""Access to an EKS cluster: access entries and their policies, and the roles of pods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moto.iam.models import iam_backends
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.eks.clusters import Clusters
from local.aws.corrections.eks.tables import POLICIES, POLICY_ARN
from local.aws.corrections.eks.things import (
    Cluster,
    Document,
    Entry,
    Thing,
    bad_parameter,
    bad_request,
    in_use,
    missing,
    paged,
)

STANDARD = "STANDARD"
_PRINCIPAL = re.compile(r"arn:aws:(iam|sts)::(\d{12}):(role|user|root|assumed-role)(/.+)?")
_NODE_TYPES = frozenset({"EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"})
PODS = "pods.eks.amazonaws.com"


def principal_id(principal: str) -> str | None:
    """The id of the role that has this ARN now; None for one that is no role, or gone."""
    account = principal.split(":")[4]
    roles = iam_backends[account]["aws"].roles.values() if account else ()
    return next((str(role.id) for role in list(roles) if role.arn == principal), None)


class Access(Clusters):
    """The operations on access entries, access policies and pod identity associations."""

    def _admit_creator(self, cluster: Cluster) -> None:
        access = cluster.document["accessConfig"]
        if access["bootstrapClusterCreatorAdminPermissions"] and access["authenticationMode"] != "CONFIG_MAP":
            self.admit(cluster, self.caller, STANDARD)
            scope = {"type": "cluster", "namespaces": []}
            self._associate(cluster, self.caller, f"{POLICY_ARN}AmazonEKSClusterAdminPolicy", scope)

    def admit(self, cluster: Cluster, principal: str, kind: str, **fields: Any) -> Entry:
        """The new access entry of a principal."""
        now, name = pace.moment(), principal.rpartition("/")[2]
        node = kind in _NODE_TYPES
        entry = Entry(
            {
                "clusterName": cluster.name,
                "principalArn": principal,
                "kubernetesGroups": ["system:nodes"] if node else [],
                "accessEntryArn": self.arn("access-entry", cluster.name, "role", self.account_id, name, _uuid()),
                "createdAt": now,
                "modifiedAt": now,
                "tags": {},
                "username": "system:node:{{EC2PrivateDNSName}}" if node else _username(principal),
                "type": kind,
                **fields,
            },
            principal_id=principal_id(principal),
        )
        cluster.entries[principal] = entry
        return entry

    def create_access_entry(self, parameters: Mapping[str, Any]) -> Document:
        cluster, principal = self._with_entries(parameters), parameters["principalArn"]
        if principal in cluster.entries:
            raise in_use("The specified access entry resource is already in use on this cluster.")
        self._check_principal(principal)
        kind = parameters.get("type", STANDARD)
        fields = {name: parameters[name] for name in ("kubernetesGroups", "username", "tags") if name in parameters}
        if kind in _NODE_TYPES and {"kubernetesGroups", "username"} & set(fields):
            raise bad_parameter(f"Kubernetes groups and username are not supported for entries of type {kind}")
        if any(group.startswith(("system:", "eks:", "aws:")) for group in fields.get("kubernetesGroups", ())):
            raise bad_parameter("The kubernetes group name is invalid, it cannot start with [system:, eks:, aws:]")
        return {"accessEntry": self.admit(cluster, principal, kind, **fields).copy()}

    def _with_entries(self, parameters: Mapping[str, Any]) -> Cluster:
        cluster = self.cluster(parameters)
        if cluster.document["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            raise bad_request(
                "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
                "operation."
            )
        cluster.require()
        return cluster

    def _check_principal(self, principal: str) -> None:
        fitting = _PRINCIPAL.fullmatch(principal)
        if fitting is None or fitting[1] == "sts":
            raise bad_parameter("The specified principalArn is invalid: invalid principal.")
        iam = iam_backends[fitting[2]]["aws"]
        arns = {role.arn for role in iam.roles.values()} | {user.arn for user in iam.users.values()}
        if fitting[3] != "root" and principal not in arns:
            raise bad_parameter("The specified principalArn is invalid: invalid principal.")

    def _entry(self, parameters: Mapping[str, Any]) -> tuple[Cluster, Entry]:
        cluster, principal = self._with_entries(parameters), parameters["principalArn"]
        if principal not in cluster.entries:
            raise missing(f"The specified principalArn could not be found: {principal}.")
        return cluster, cluster.entries[principal]

    def describe_access_entry(self, parameters: Mapping[str, Any]) -> Document:
        return {"accessEntry": self._entry(parameters)[1].copy()}

    def list_access_entries(self, parameters: Mapping[str, Any]) -> Document:
        cluster, policy = self._with_entries(parameters), parameters.get("associatedPolicyArn")
        names = [name for name in cluster.entries if not policy or policy in cluster.policies.get(name, {})]
        page, more = paged(sorted(names), parameters)
        return {"accessEntries": page, **more}

    def update_access_entry(self, parameters: Mapping[str, Any]) -> Document:
        entry = self._entry(parameters)[1]
        changed = {name: parameters[name] for name in ("kubernetesGroups", "username") if name in parameters}
        entry.document |= {**changed, "modifiedAt": pace.moment()}
        return {"accessEntry": entry.copy()}

    def delete_access_entry(self, parameters: Mapping[str, Any]) -> Document:
        cluster, entry = self._entry(parameters)
        del cluster.entries[entry.document["principalArn"]]
        cluster.policies.pop(entry.document["principalArn"], None)
        return {}

    def list_access_policies(self, parameters: Mapping[str, Any]) -> Document:
        page, more = paged([{"name": name, "arn": POLICY_ARN + name} for name in POLICIES], parameters)
        return {"accessPolicies": page, **more}

    def associate_access_policy(self, parameters: Mapping[str, Any]) -> Document:
        cluster, entry = self._entry(parameters)
        arn, scope = parameters["policyArn"], parameters["accessScope"]
        if arn not in {POLICY_ARN + name for name in POLICIES}:
            raise bad_parameter(f"The specified policyArn is invalid: {arn}")
        if entry.document["type"] != STANDARD:
            raise bad_request(f"Access policies are not supported for entries of type {entry.document['type']}")
        if scope.get("type") == "namespace" and not scope.get("namespaces"):
            raise bad_parameter("Namespaces are required for the access scope type namespace")
        scope = {"type": scope["type"], "namespaces": list(scope.get("namespaces", ()))}
        policy = self._associate(cluster, parameters["principalArn"], arn, scope)
        return {**_of(cluster, parameters), "associatedAccessPolicy": policy}

    def _associate(self, cluster: Cluster, principal: str, arn: str, scope: Document) -> Document:
        policies, now = cluster.policies.setdefault(principal, {}), pace.moment()
        begin = policies[arn]["associatedAt"] if arn in policies else now
        policies[arn] = {"policyArn": arn, "accessScope": scope, "associatedAt": begin, "modifiedAt": now}
        return dict(policies[arn])

    def disassociate_access_policy(self, parameters: Mapping[str, Any]) -> Document:
        cluster, _ = self._entry(parameters)
        policies = cluster.policies.get(parameters["principalArn"], {})
        if policies.pop(parameters["policyArn"], None) is None:
            raise missing("The specified policyArn could not be found: the policy is not associated.")
        return {}

    def list_associated_access_policies(self, parameters: Mapping[str, Any]) -> Document:
        cluster, _ = self._entry(parameters)
        policies = list(cluster.policies.get(parameters["principalArn"], {}).values())
        page, more = paged(policies, parameters)
        return {**_of(cluster, parameters), "associatedAccessPolicies": page, **more}

    def create_pod_identity_association(self, parameters: Mapping[str, Any]) -> Document:
        cluster = self.cluster(parameters)
        cluster.require()
        account = parameters["namespace"], parameters["serviceAccount"]
        for name, association in cluster.associations.items():
            if (association.document["namespace"], association.document["serviceAccount"]) == account:
                raise in_use(f"Association already exists: {name}", clusterName=cluster.name)
        self.require_role(parameters["roleArn"], PODS)
        return {"association": self.associate_pods(cluster, parameters).copy()}

    def associate_pods(self, cluster: Cluster, parameters: Mapping[str, Any], owner: str = "") -> Thing:
        """The new association of a service account with a role. ``owner`` is the ARN of the add-on that has it."""
        name, now = f"a-{mock_random.get_random_hex(17)}", pace.moment()
        fields = ("namespace", "serviceAccount", "roleArn", "targetRoleArn", "disableSessionTags", "policy")
        association = Thing(
            {
                "clusterName": cluster.name,
                **{field: parameters[field] for field in fields if field in parameters},
                "associationArn": self.arn("podidentityassociation", cluster.name, name),
                "associationId": name,
                "tags": dict(parameters.get("tags", {})),
                "createdAt": now,
                "modifiedAt": now,
                **({"ownerArn": owner} if owner else {}),
            }
        )
        cluster.associations[name] = association
        return association

    def _association(self, parameters: Mapping[str, Any]) -> tuple[Cluster, Thing]:
        cluster, name = self.cluster(parameters), parameters["associationId"]
        if name not in cluster.associations:
            raise missing(f"No association found with ID: {name}", clusterName=cluster.name)
        return cluster, cluster.associations[name]

    def describe_pod_identity_association(self, parameters: Mapping[str, Any]) -> Document:
        return {"association": self._association(parameters)[1].copy()}

    def list_pod_identity_associations(self, parameters: Mapping[str, Any]) -> Document:
        cluster = self.cluster(parameters)
        filters = {name: parameters[name] for name in ("namespace", "serviceAccount") if parameters.get(name)}
        summary = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId", "ownerArn")
        rows = [
            {name: association.document[name] for name in summary if name in association.document}
            for association in cluster.associations.values()
            if filters.items() <= association.document.items()
        ]
        page, more = paged(rows, parameters)
        return {"associations": page, **more}

    def update_pod_identity_association(self, parameters: Mapping[str, Any]) -> Document:
        _, association = self._association(parameters)
        if "roleArn" in parameters:
            self.require_role(parameters["roleArn"], PODS)
        changed = {name: parameters[name] for name in ("roleArn", "targetRoleArn", "policy") if name in parameters}
        association.document |= {**changed, "modifiedAt": pace.moment()}
        return {"association": association.copy()}

    def delete_pod_identity_association(self, parameters: Mapping[str, Any]) -> Document:
        cluster, association = self._association(parameters)
        return {"association": cluster.associations.pop(association.document["associationId"]).copy()}


def _of(cluster: Cluster, parameters: Mapping[str, Any]) -> Document:
    return {"clusterName": cluster.name, "principalArn": parameters["principalArn"]}


def _uuid() -> str:
    return str(mock_random.uuid4())


def _username(principal: str) -> str:
    """The name that a principal has in the cluster."""
    if ":role/" not in principal:
        return principal
    account, name = principal.split(":")[4], principal.rpartition("/")[2]
    return f"arn:aws:sts::{account}:assumed-role/{name}/{{{{SessionName}}}}"
