"""A cluster of Spectro Cloud's Palette on AWS as a document: the way to a cluster's settings and back.

The document is the body by which Palette creates one, with ``apiVersion`` and ``kind`` before it. ``docs/spectro.md``
has the table of its fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.clusters.manifests import DESCRIPTION, ClusterDocument
from stockyard.domain.models.base import read, without_nulls
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clusters.ec2 import KIND as CLUSTER_KIND
from stockyard.providers.clusters.ec2.configuration import DEFAULT_TYPES
from stockyard.providers.clusters.ec2.members.control_group import brought_to_agree
from stockyard.providers.clusters.ec2.spectro import profiles as spectro_profiles
from stockyard.providers.clusters.ec2.spectro.models import (
    API_VERSION,
    BARE_TAG,
    CONTROL_PLANE,
    OVERRIDE,
    SCALE_IN,
    SCALE_OUT,
    SPECTRO_CLUSTER,
    WORKER,
    MachinePool,
    SpectroDocument,
    SpectroSpec,
    UpdateStrategy,
)

GROUPS = "autoscaler_node_groups"
SSH_CIDRS = "stockyard.dev/ssh-cidrs"
"""The annotation with the ranges that may reach the bastion, by commas. Palette opens it to everybody; here it is
open to nobody until somebody says to whom."""
CONTROL_PLANE_POOL, WORKER_POOL = "control-plane-pool", "worker-pool"
"""The names of the two pools of a body without any."""
_SETTLED = frozenset({DESCRIPTION, "description", SSH_CIDRS})
"""Annotations that the record has as fields of its own, which may change without the document."""
_STRATEGIES = {"add_first": SCALE_OUT, "remove_first": SCALE_IN, "custom": OVERRIDE}
_STRATEGY_OF = {name: own_name for own_name, name in _STRATEGIES.items()}


# --- from a document --------------------------------------------------------------------------------------------------


def read_cluster(document: Any, at: FieldPath) -> ClusterDocument:
    """See ``cluster_manifests.ClusterForm``."""
    body: SpectroDocument = read(SpectroDocument, without_nulls(document), at=at)
    metadata, spec = body.metadata, body.spec
    described = metadata.annotations.get(DESCRIPTION) or metadata.annotations.get("description")
    annotations = {name: text for name, text in metadata.annotations.items() if name not in _SETTLED}
    if described:
        annotations[DESCRIPTION] = described
    return ClusterDocument(
        name=metadata.name,
        kind=SPECTRO_CLUSTER,
        cloud=CLUSTER_KIND.cloud,
        cluster_type=CLUSTER_KIND.cluster_type,
        driver=CLUSTER_KIND.driver,
        settings=_settings(body),
        description=described or _usual_description(metadata.name),
        is_described=bool(described),
        account=spec.cloud_account_uid,
        account_path=(*at, "spec", "cloudAccountUid"),
        tags=dict(metadata.labels),
        profiles=spectro_profiles.choices(spec),
        document={
            "annotations": annotations,
            "cloud_account": spec.cloud_account_uid,
        },
    )


def _usual_description(name: str) -> str:
    return f"{SPECTRO_CLUSTER} {name}"


def _control_pool(spec: SpectroSpec) -> MachinePool | None:
    return next((pool for pool in spec.machinepoolconfig if pool.pool_config.is_control_plane), None)


def _settings(body: SpectroDocument) -> dict[str, Any]:
    spec = body.spec
    cloud, control = spec.cloud_config, _control_pool(spec)
    cidrs = [cidr.strip() for cidr in body.metadata.annotations.get(SSH_CIDRS, "").split(",") if cidr.strip()]
    return {
        "region_name": cloud.region,
        "key_pair": cloud.ssh_key_name,
        "bastion": {"enabled": not cloud.bastion_disabled},
        "ssh_cidrs": cidrs,
        "control_plane_workloads": control is not None and control.pool_config.use_control_plane_as_worker,
        **_placement(spec),
        GROUPS: [_group(pool) for pool in spec.machinepoolconfig] or [dict(group) for group in _USUAL_GROUPS],
    }


_USUAL_SIZE = {"min_size": 1, "max_size": 1, "instance_types": list(DEFAULT_TYPES)}
_USUAL_GROUPS = (
    {"name": CONTROL_PLANE_POOL, "role": "control", **_USUAL_SIZE},
    {"name": WORKER_POOL, "role": "worker", **_USUAL_SIZE},
)


def _placement(spec: SpectroSpec) -> dict[str, Any]:
    """The zones of all pools, the control plane's first; with a VPC also the subnets in them."""
    pools = sorted(spec.machinepoolconfig, key=lambda pool: not pool.pool_config.is_control_plane)
    zones = list(dict.fromkeys(zone for pool in pools for zone in _zones(pool)))
    placement: dict[str, Any] = {"zones": zones} if zones else {}
    if not spec.cloud_config.vpc_id:
        return placement
    subnets: dict[str, dict[str, str]] = {}
    for pool in pools:
        for entry in pool.cloud_config.subnets:
            subnets.setdefault(entry.az, {}).update(_subnet_ids(entry.id))
    placement["vpc_id"] = spec.cloud_config.vpc_id
    if subnets:
        placement["subnets"] = [{"zone": zone, **ids} for zone, ids in subnets.items()]
    return placement


def _zones(pool: MachinePool) -> Sequence[str]:
    return pool.cloud_config.azs or [entry.az for entry in pool.cloud_config.subnets]


def _subnet_ids(text: str) -> dict[str, str]:
    """One id is that of a private subnet; of two the public one comes first, as Palette has it."""
    ids = [part.strip() for part in text.split(",") if part.strip()]
    return {"private": ids[0]} if len(ids) == 1 else {"public": ids[0], "private": ids[1]}


def _group(pool: MachinePool) -> dict[str, Any]:
    config, machines = pool.pool_config, pool.cloud_config
    group: dict[str, Any] = {
        "name": config.name,
        "role": "control" if config.is_control_plane else "worker",
        "min_size": config.least,
        "max_size": config.most,
        "instance_types": [machines.instance_type],
        "labels": dict(config.additional_labels),
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in config.taints],
        "capacity_type": machines.capacity_type,
        "update_strategy": _strategy(config.update_strategy),
    }
    if zones := list(_zones(pool)):
        group["zones"] = zones
    if machines.root_device_size is not None:
        group["root_disk_gib"] = machines.root_device_size
    if machines.spot_market_options is not None:
        group["max_price"] = _bid(machines.spot_market_options.max_price)
    return group


def _bid(text: str) -> dict[str, float]:
    return {"percent": int(text[:-1])} if text.endswith("%") else {"usd_hour": float(text)}


def _strategy(strategy: UpdateStrategy) -> dict[str, Any]:
    own_strategy: dict[str, Any] = {"type": _STRATEGY_OF[strategy.type]}
    if strategy.type == OVERRIDE:
        counts = {"max_surge": strategy.max_surge, "max_unavailable": strategy.max_unavailable}
        own_strategy |= {
            name: count if count is None or count.endswith("%") else int(count) for name, count in counts.items()
        }
    return own_strategy


def wanted_settings(document: ClusterDocument, current: Mapping[str, Any] | None) -> dict[str, Any]:
    """See ``cluster_manifests.ClusterForm``."""
    if current is None:
        return dict(document.settings)
    groups = {group["name"]: group for group in current.get(GROUPS) or ()}
    wanted_groups = [{**groups.get(group["name"], {}), **group} for group in document.settings[GROUPS]]
    bastion = {**(current.get("bastion") or {}), **document.settings["bastion"]}
    own_settings = {**document.settings, GROUPS: wanted_groups, "bastion": bastion}
    return brought_to_agree({**current, **own_settings}, own_settings)


# --- to a document ----------------------------------------------------------------------------------------------------


def cluster_manifest(cluster: Cluster, profiles: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """See ``cluster_manifests.ClusterForm``. What the body cannot say of the settings is left out."""
    stored, settings = cluster.document, cluster.settings
    labels = {key: value or BARE_TAG for key, value in cluster.tags.items()}
    annotations = {name: text for name, text in (stored.get("annotations") or {}).items() if name not in _SETTLED}
    if cluster.description != _usual_description(cluster.name):
        annotations["description"] = cluster.description
    cidrs = ",".join(settings.get("ssh_cidrs") or ())
    if cidrs:
        annotations[SSH_CIDRS] = cidrs
    return {
        "apiVersion": API_VERSION,
        "kind": SPECTRO_CLUSTER,
        "metadata": {"name": cluster.name, "labels": labels, "annotations": annotations},
        "spec": {
            "cloudAccountUid": stored.get("cloud_account") or str(cluster.cloud_account_id),
            "cloudConfig": {
                "region": settings.get("region_name") or DEFAULT_REGION,
                "sshKeyName": settings.get("key_pair") or "",
                "vpcId": settings.get("vpc_id") or "",
                "controlPlaneLoadBalancer": "",
                "bastionDisabled": not (settings.get("bastion") or {}).get("enabled", False),
            },
            "clusterType": "PureManage",
            **({"profiles": spectro_profiles.references(profiles)} if profiles else {}),
            "machinepoolconfig": [_pool_of(settings, group) for group in _groups_of(settings)],
        },
    }


def _groups_of(settings: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The groups of the settings, with that of a control plane whose settings have no group for it."""
    groups = settings.get(GROUPS) or ()
    if not any(group.get("role") == "control" for group in groups):
        size = int(settings.get("control_plane_size") or 1)
        types = settings.get("control_plane_instance_types") or DEFAULT_TYPES
        yield {
            "name": CONTROL_PLANE_POOL,
            "role": "control",
            "min_size": size,
            "max_size": size,
            "instance_types": types,
        }
    yield from groups


def _pool_of(settings: Mapping[str, Any], group: Mapping[str, Any]) -> dict[str, Any]:
    machines = _machines(settings, group.get("zones") or settings.get("zones") or (), group["instance_types"][0])
    machines["capacityType"] = group.get("capacity_type") or "on-demand"
    bid = group.get("max_price")
    if bid:
        price = f"{bid['percent']:g}%" if bid.get("percent") else f"{bid['usd_hour']:.6f}".rstrip("0").rstrip(".")
        machines["spotMarketOptions"] = {"maxPrice": price}
    if group.get("root_disk_gib"):
        machines["rootDeviceSize"] = group["root_disk_gib"]
    control = group.get("role") == "control"
    return {
        "cloudConfig": machines,
        "poolConfig": {
            "name": group["name"],
            "size": group["min_size"],
            "minSize": group["min_size"],
            "maxSize": group["max_size"],
            "isControlPlane": control,
            "useControlPlaneAsWorker": control and bool(settings.get("control_plane_workloads")),
            "labels": [CONTROL_PLANE if control else WORKER],
            "taints": [dict(taint) for taint in group.get("taints") or ()],
            "additionalLabels": dict(group.get("labels") or {}),
            "updateStrategy": _strategy_of(group.get("update_strategy") or {}),
        },
    }


def _machines(settings: Mapping[str, Any], zones: Sequence[str], instance_type: str) -> dict[str, Any]:
    subnets = [
        {"az": entry["zone"], "id": ",".join(_ids(entry))}
        for entry in settings.get("subnets") or ()
        if not zones or entry["zone"] in zones
    ]
    return {"azs": list(zones), "instanceType": instance_type, "capacityType": "on-demand", "subnets": subnets}


def _ids(entry: Mapping[str, Any]) -> Iterator[str]:
    return (str(entry[name]) for name in ("public", "private") if entry.get(name))


def _strategy_of(strategy: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"type": _STRATEGIES[strategy.get("type") or "add_first"]}
    if body["type"] == OVERRIDE:
        body |= {"maxSurge": str(strategy.get("max_surge")), "maxUnavailable": str(strategy.get("max_unavailable"))}
    return body


# --- pointers ---------------------------------------------------------------------------------------------------------

_POOLS = ("spec", "machinepoolconfig")
_PATHS: Mapping[str, tuple[str, ...]] = {
    "name": ("metadata", "name"),
    "description": ("metadata", "annotations", DESCRIPTION),
    "cloud_account_id": ("spec", "cloudAccountUid"),
    "tags": ("metadata", "labels"),
    "settings/region_name": ("spec", "cloudConfig", "region"),
    "settings/key_pair": ("spec", "cloudConfig", "sshKeyName"),
    "settings/vpc_id": ("spec", "cloudConfig", "vpcId"),
    "settings/bastion": ("spec", "cloudConfig", "bastionDisabled"),
    "settings/ssh_cidrs": ("metadata", "annotations", SSH_CIDRS),
    f"settings/{GROUPS}": _POOLS,
}
_POOL_PATHS: Mapping[str, tuple[str, ...]] = {
    "name": ("poolConfig", "name"),
    "min_size": ("poolConfig", "minSize"),
    "max_size": ("poolConfig", "maxSize"),
    "labels": ("poolConfig", "additionalLabels"),
    "taints": ("poolConfig", "taints"),
    "update_strategy": ("poolConfig", "updateStrategy"),
    "instance_types": ("cloudConfig", "instanceType"),
    "capacity_type": ("cloudConfig", "capacityType"),
    "zones": ("cloudConfig", "azs"),
    "max_price": ("cloudConfig", "spotMarketOptions", "maxPrice"),
    "root_disk_gib": ("cloudConfig", "rootDeviceSize"),
}


def path_of(pointer_of_request: str) -> str:
    """See ``cluster_manifests.ClusterForm``. What is said of the control plane or of zones alone is at the pools; what
    no field says is at ``/spec``."""
    parts = pointer_of_request.split("/")[1:]
    if parts[:1] in (["profiles"], ["packs"], ["objects"]):
        return spectro_profiles.path_of([part.replace("~1", "/").replace("~0", "~") for part in parts])
    length = 2 if parts[:1] == ["settings"] else 1
    start, below = _PATHS.get("/".join(parts[:length])), parts[length:]
    if start is None:
        return pointer(*(_POOLS if parts[:1] == ["settings"] else ("spec",)))
    if start == _POOLS and len(below) > 1:
        below = [below[0], *_POOL_PATHS.get(below[1], (below[1],)), *below[2:]]
    return pointer(*start, *below)
