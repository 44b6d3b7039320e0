"""EKS's add-ons, whose health needs nodes, its versions, and its insights, the findings of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from moto.ec2.models import ec2_backends
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.eks.access import PODS, Access
from local.aws.corrections.eks.clusters import PLATFORM
from local.aws.corrections.eks.tables import ADDONS, DEFAULT_VERSION, EXTENDED, NEEDS_NODES, VERSIONS, addon_versions
from local.aws.corrections.eks.things import Cluster, Document, Thing, bad_parameter, in_use, missing, paged

_UNWELL = {
    "code": "InsufficientNumberOfReplicas",
    "message": "The add-on is unhealthy because it doesn't have the desired number of replicas.",
}


class Addons(Access):
    """The operations on add-ons, versions and insights."""

    def settle(self) -> None:
        """See ``Eks``; then the health of add-ons follows the nodes."""
        super().settle()
        for cluster in self.clusters.values():
            lonely = not self.has_nodes(cluster)
            for name, addon in cluster.addons.items():
                unwell = lonely and name in NEEDS_NODES
                if addon.change is None and addon.document["status"] in {"ACTIVE", "DEGRADED"}:
                    addon.document["status"] = "DEGRADED" if unwell else "ACTIVE"
                    addon.document["health"] = {"issues": [dict(_UNWELL)] if unwell else []}

    def has_nodes(self, cluster: Cluster) -> bool:
        """Whether a machine of the cluster runs."""
        tag = f"kubernetes.io/cluster/{cluster.name}"
        ec2 = ec2_backends[self.account_id][self.region_name]
        return any(
            instance.state == "running" and tag in ec2.tags.get(instance.id, {})
            for reservation in list(ec2.reservations.values())
            for instance in reservation.instances
        )

    def create_addon(self, parameters: Mapping[str, Any]) -> Document:
        cluster, name = self.cluster(parameters), parameters["addonName"]
        cluster.require()
        if name in cluster.addons:
            raise in_use("Addon already exists.", clusterName=cluster.name, addonName=name)
        version, now = self._addon_version(cluster, parameters), pace.moment()
        arn = self.arn("addon", cluster.name, name, str(mock_random.uuid4()))
        associations = self._associations(cluster, parameters, arn)
        addon = Thing(
            {
                "addonName": name,
                "clusterName": cluster.name,
                "addonVersion": version,
                "health": {"issues": []},
                "addonArn": arn,
                "createdAt": now,
                "modifiedAt": now,
                "tags": dict(parameters.get("tags", {})),
                "owner": "aws",
                "publisher": "eks",
                **_optional(parameters),
                **({"podIdentityAssociations": associations} if associations else {}),
            }
        )
        addon.begin("CREATING", "add-on", lambda: addon.become("ACTIVE"))
        cluster.addons[name] = addon
        return {"addon": addon.copy()}

    def _addon_version(self, cluster: Cluster, parameters: Mapping[str, Any]) -> str:
        name = parameters["addonName"]
        versions = addon_versions(name, cluster.document["version"])
        if not versions:
            raise bad_parameter(f"Addon {name} is not supported", clusterName=cluster.name, addonName=name)
        version = parameters.get("addonVersion", versions[0])
        if version not in versions:
            raise bad_parameter("Addon version specified is not supported", clusterName=cluster.name, addonName=name)
        return str(version)

    def _associations(self, cluster: Cluster, parameters: Mapping[str, Any], arn: str) -> list[str]:
        associations = []
        for pair in parameters.get("podIdentityAssociations", ()):
            self.require_role(pair["roleArn"], PODS)
            fields = {"namespace": "kube-system", **pair}
            associations.append(self.associate_pods(cluster, fields, arn).document["associationArn"])
        return associations

    def _addon(self, parameters: Mapping[str, Any]) -> tuple[Cluster, Thing]:
        cluster, name = self.cluster(parameters), parameters["addonName"]
        if name not in cluster.addons:
            text = f"No addon: {name} found in cluster: {cluster.name}"
            raise missing(text, clusterName=cluster.name, addonName=name)
        return cluster, cluster.addons[name]

    def describe_addon(self, parameters: Mapping[str, Any]) -> Document:
        return {"addon": self._addon(parameters)[1].copy()}

    def list_addons(self, parameters: Mapping[str, Any]) -> Document:
        page, more = paged(sorted(self.cluster(parameters).addons), parameters)
        return {"addons": page, **more}

    def update_addon(self, parameters: Mapping[str, Any]) -> Document:
        cluster, addon = self._addon(parameters)
        name = addon.document["addonName"]
        if addon.change is not None:
            text = f"Addon {name} currently has an operation in progress"
            raise in_use(text, clusterName=cluster.name, addonName=name)
        present = {"addonVersion": addon.document["addonVersion"]}
        version = self._addon_version(cluster, {**present, **parameters}) if "addonVersion" in parameters else ""
        changed = {**_optional(parameters), **({"addonVersion": version} if version else {})}

        def change() -> None:
            # Whether what an update does not name stays, AWS does not say.
            addon.document.pop("configurationValues", None)
            addon.document |= {**changed, "modifiedAt": pace.moment()}
            addon.become("ACTIVE")

        addon.document["status"] = "UPDATING"
        params = {field[0].upper() + field[1:]: value for field, value in changed.items()}
        update = self.begin_update(cluster, "AddonUpdate", params, "add-on update", change, ("", name))
        return {"update": update.copy()}

    def delete_addon(self, parameters: Mapping[str, Any]) -> Document:
        cluster, addon = self._addon(parameters)
        document = addon.document

        def end() -> bool:
            for name, association in list(cluster.associations.items()):
                if association.document.get("ownerArn") == document["addonArn"]:
                    del cluster.associations[name]
            return True

        addon.begin("DELETING", "add-on deletion", end)
        return {"addon": addon.copy()}

    def describe_addon_versions(self, parameters: Mapping[str, Any]) -> Document:
        names = [parameters["addonName"]] if parameters.get("addonName") else list(ADDONS)
        minors = [parameters["kubernetesVersion"]] if parameters.get("kubernetesVersion") else list(VERSIONS)
        addons = []
        for name in (name for name in names if name in ADDONS):
            by_version: dict[str, list[Document]] = {}
            for minor in (minor for minor in minors if minor in VERSIONS):
                for position, version in enumerate(addon_versions(name, minor)):
                    row = {"clusterVersion": minor, "platformVersions": ["*"], "defaultVersion": position == 0}
                    by_version.setdefault(version, []).append(row)
            versions = [
                {"addonVersion": version, "architecture": ["amd64", "arm64"], "compatibilities": rows}
                for version, rows in by_version.items()
            ]
            addons.append({"addonName": name, "owner": "aws", "publisher": "eks", "addonVersions": versions})
        page, more = paged(addons, parameters)
        return {"addons": page, **more}

    def describe_cluster_versions(self, parameters: Mapping[str, Any]) -> Document:
        chosen_versions = parameters.get("clusterVersions") or list(VERSIONS)
        rows = []
        for version in (name for name in VERSIONS if name in chosen_versions):
            release, standard, extended, patch = VERSIONS[version]
            status = "EXTENDED_SUPPORT" if version in EXTENDED else "STANDARD_SUPPORT"
            rows.append(
                {
                    "clusterVersion": version,
                    "clusterType": "eks",
                    "defaultPlatformVersion": PLATFORM,
                    "defaultVersion": version == DEFAULT_VERSION,
                    "releaseDate": _day(release),
                    "endOfStandardSupportDate": _day(standard),
                    "endOfExtendedSupportDate": _day(extended),
                    "status": status.lower().replace("_", "-"),
                    "versionStatus": status,
                    "kubernetesPatchVersion": patch,
                }
            )
        statuses = {parameters.get("status"), parameters.get("versionStatus")} - {None}
        rows = [row for row in rows if not statuses or statuses & {row["status"], row["versionStatus"]}]
        rows = [row for row in rows if row["defaultVersion"] or not parameters.get("defaultOnly")]
        page, more = paged(rows, parameters)
        return {"clusterVersions": page, **more}

    def list_insights(self, parameters: Mapping[str, Any]) -> Document:
        chosen_fields = parameters.get("filter") or {}
        insights = [self._insight(insight) for insight in self._insights_of(parameters)]
        for field, key in (("statuses", "status"), ("categories", "")):
            accepted = chosen_fields.get(field)
            if accepted:
                insights = [i for i in insights if (i["insightStatus"][key] if key else i["category"]) in accepted]
        summary = [{k: v for k, v in i.items() if k not in _DETAILS} for i in insights]
        page, more = paged(summary, parameters)
        return {"insights": page, **more}

    def describe_insight(self, parameters: Mapping[str, Any]) -> Document:
        for insight in self._insights_of(parameters):
            if self._insight(insight)["id"] == parameters["id"]:
                return {"insight": self._insight(insight)}
        raise missing(f"No insight found for ID: {parameters['id']}")

    def _insights_of(self, parameters: Mapping[str, Any]) -> list[Document]:
        self.cluster(parameters)
        return self.insights

    def _insight(self, insight: Document) -> Document:
        now = pace.moment()
        return {
            "id": str(uuid5(NAMESPACE_URL, insight["name"])),
            "category": "UPGRADE_READINESS",
            "name": insight["name"],
            "kubernetesVersion": insight.get("kubernetesVersion", ""),
            "lastRefreshTime": now,
            "lastTransitionTime": now,
            "description": insight.get("description", insight["name"]),
            "insightStatus": {"status": insight["status"], "reason": insight.get("reason", "")},
            "recommendation": insight.get("recommendation", ""),
            "additionalInfo": {},
            "resources": insight.get("resources", []),
            "categorySpecificSummary": {},
        }


def _day(text: str) -> Any:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


_DETAILS = frozenset({"recommendation", "additionalInfo", "resources", "categorySpecificSummary"})
_OPTIONAL = ("serviceAccountRoleArn", "configurationValues")


def _optional(parameters: Mapping[str, Any]) -> Document:
    return {name: parameters[name] for name in _OPTIONAL if name in parameters}
