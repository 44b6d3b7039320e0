"""Updates of EKS's node groups: sizes, labels and taints at once, versions and templates machine by machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.aws.corrections import pace
from local.aws.corrections.eks.node_groups import NodeGroup, NodeGroups, Rolling, check_sizes
from local.aws.corrections.eks.node_templates import check_template, launch_template
from local.aws.corrections.eks.tables import VERSIONS, minor, release_version
from local.aws.corrections.eks.things import Cluster, Document, bad_parameter, bad_request, in_use


class NodeGroupUpdates(NodeGroups):
    """The operations that change node groups."""

    def _changeable(self, parameters: Mapping[str, Any]) -> tuple[Cluster, NodeGroup]:
        cluster, group = self._group(parameters)
        if group.document["status"] not in {"ACTIVE", "DEGRADED"}:
            text = "Nodegroup cannot be updated as it is currently not in Active State"
            raise in_use(text, clusterName=cluster.name, nodegroupName=group.document["nodegroupName"])
        return cluster, group

    def update_nodegroup_config(self, parameters: Mapping[str, Any]) -> Document:
        cluster, group = self._changeable(parameters)
        document, scaling = group.document, group.scaling
        present = {"minSize": scaling.minimum, "maxSize": scaling.maximum, "desiredSize": group.told_size}
        sizes = {**present, **(parameters.get("scalingConfig") or {})}
        check_sizes(sizes)
        labels = _labels(document["labels"], parameters.get("labels") or {})
        taints = _taints(document["taints"], parameters.get("taints") or {})
        scaling.minimum, scaling.maximum = sizes["minSize"], sizes["maxSize"]
        if "desiredSize" in (parameters.get("scalingConfig") or {}):
            scaling.desired = group.told_size = sizes["desiredSize"]
        scaling.desired = min(max(scaling.desired, scaling.minimum), scaling.maximum)
        document["scalingConfig"] = sizes

        def change() -> None:
            document.update(labels=labels, taints=taints, modifiedAt=pace.moment())
            document["updateConfig"] = {**document["updateConfig"], **(parameters.get("updateConfig") or {})}
            group.become("ACTIVE")

        document["status"] = "UPDATING"
        params = {name[0].upper() + name[1:]: value for name, value in (parameters.get("scalingConfig") or {}).items()}
        part = (document["nodegroupName"], "")
        update = self.begin_update(cluster, "ConfigUpdate", params, "node group update", change, part)
        scaling.settle()
        return {"update": update.copy()}

    def update_nodegroup_version(self, parameters: Mapping[str, Any]) -> Document:
        cluster, group = self._changeable(parameters)
        before, document = dict(group.document), group.document
        after, data = self._next(cluster, document, parameters)
        scaling = group.scaling
        template, earlier_launch = self._template(cluster, after, data), scaling.launch
        scaling.launch, scaling.generation = template.launch, scaling.generation + 1
        names = {"version": "Version", "releaseVersion": "ReleaseVersion"}
        params = {label: after[name] for name, label in names.items() if after[name] != before[name]}
        if after.get("launchTemplate") != before.get("launchTemplate"):
            params["LaunchTemplateVersion"] = after["launchTemplate"]["version"]
        part = (document["nodegroupName"], "")
        update = self.begin_update(cluster, "VersionUpdate", params, "node group update", lambda: None, part)
        # It is done with its last machine, not after a time.
        update.change = None

        def done(succeeded: bool) -> None:
            if succeeded:
                document.update({**after, "modifiedAt": pace.moment(), "labels": document["labels"]})
            else:
                scaling.launch = earlier_launch
                message = (scaling.activities[-1].get("StatusMessage") or "") if scaling.activities else ""
                update.document["errors"] = [{"errorCode": "NodeCreationFailure", "errorMessage": message}]
            group.become("ACTIVE")
            update.become("Successful" if succeeded else "Failed")

        document["status"] = "UPDATING"
        group.rolling = Rolling(update, done)
        answer = {"update": update.copy()}
        group.settle()
        return answer

    def _next(self, cluster: Cluster, document: Document, parameters: Mapping[str, Any]) -> tuple[Document, Document]:
        """The group's document after the update, and its launch template's data. Raises ``ServiceRefusal``."""
        after: Document = dict(document)
        data: Document = {}
        reference = {**(document.get("launchTemplate") or {}), **(parameters.get("launchTemplate") or {})}
        if "launchTemplate" in parameters and "launchTemplate" not in document:
            raise bad_request("A node group without a launch template cannot be updated to one")
        if reference:
            if parameters.get("launchTemplate", {}).get("id", reference["id"]) != document["launchTemplate"]["id"]:
                raise bad_parameter("The launch template of a node group cannot be replaced by another one")
            reference, data = launch_template(self.account_id, self.region_name, reference)
            check_template({"capacityType": document["capacityType"]}, data)
            after["launchTemplate"] = reference
        version = parameters.get("version") or (
            cluster.document["version"] if "launchTemplate" not in parameters else document["version"]
        )
        if version not in VERSIONS or minor(version) > minor(cluster.document["version"]):
            raise bad_parameter(f"Requested Nodegroup version {version} is not supported by the cluster's version")
        if minor(version) < minor(document["version"]):
            raise bad_parameter(f"Nodegroup cannot be updated from {document['version']} to {version}")
        after["version"] = version
        if "ImageId" in data:
            after["releaseVersion"] = data["ImageId"]
        else:
            keeps = version == document["version"] and "launchTemplate" in parameters
            usual = document["releaseVersion"] if keeps else release_version(version)
            after["releaseVersion"] = parameters.get("releaseVersion") or usual
        return after, data


def _labels(labels: Mapping[str, str], changes: Mapping[str, Any]) -> dict[str, str]:
    removed_keys = changes.get("removeLabels") or ()
    return {
        **{key: value for key, value in labels.items() if key not in removed_keys},
        **(changes.get("addOrUpdateLabels") or {}),
    }


def _taints(taints: list[Document], changes: Mapping[str, Any]) -> list[Document]:
    replaced_keys = {
        (taint["key"], taint["effect"])
        for name in ("removeTaints", "addOrUpdateTaints")
        for taint in changes.get(name) or ()
    }
    stay = [taint for taint in taints if (taint["key"], taint["effect"]) not in replaced_keys]
    return stay + [dict(taint) for taint in changes.get("addOrUpdateTaints") or ()]
