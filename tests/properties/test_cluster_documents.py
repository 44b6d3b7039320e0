"""A cluster that is shown as a ``Cluster`` of ``stockyard/v1`` and read again is the same cluster, of every driver.

Settings are drawn at random with all fields. ``STOCKYARD_SOAK`` raises the count to 1,000 of each driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from random import Random
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.change import SecretChoice
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import changed_settings, settings_for
from stockyard.domain.models.manifests.own_clusters import (
    OwnClusterSpec,
    OwnForm,
    own_cluster_manifest,
    read_own_cluster,
)
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.nodes.provider_kinds import loaded
from stockyard.domain.pools.records import NewPool, Pool, PoolSpec
from stockyard.domain.records import Cluster
from stockyard.errors import InvalidInput
from stockyard.providers import registry
from stockyard.providers.clusters.eks.settings import EksSettings
from tests.properties.test_pool_documents import disruption, limits, requirement, sometimes, taints

CLUSTERS, MANY = 60, 1_000
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
LABELS = {"team": "a", "example.com/some_key": "some_Value"}
MINOR = "1.36"
UPDATES = ({"type": "custom", "max_surge": 2, "max_unavailable": "10%"}, {"type": "remove_first"}, {})
OVERLAY: Mapping[str, Any] = {"range": "100.80.0.0/16", "node_to_node": True}
BACKUP = {"interval_hours": 2, "keep": 9, "on_deletion": "keep", "bucket": "my-snapshots"}
PRIVATE, PUBLIC = {"private": "subnet-0123456789abcdef1"}, {"public": "subnet-0123456789abcdef2"}
SUBNETS = (PRIVATE, PUBLIC, {**PRIVATE, **PUBLIC})
Settings = dict[str, Any]


def test_a_cluster_that_is_shown_reads_as_the_same_cluster(seed: int, soaking: bool) -> None:
    registry.introduce()
    chance = Random(seed)
    for driver, draw in DRAWN.items():
        kind = cloud_kinds.cluster_kind_of(driver)
        for number in range(MANY if soaking else CLUSTERS):
            cluster = drawn_cluster(chance, driver, draw)
            pools = [drawn_pool(chance, name) for name in chance.sample(("web", "Batch", "gpu"), number % 4)]
            manifest = own_cluster_manifest(cluster, drawn_profiles(chance), pools, "prod")
            document = read_own_cluster(manifest, ())
            again = OwnForm(driver).wanted_settings(document, cluster.settings)
            assert changed_settings(cluster, again) == cluster.settings, manifest
            new = OwnForm(driver).wanted_settings(document, None)
            assert settings_for(kind.cloud, "k8s", driver, cluster.name, new) == cluster.settings, manifest
            assert (document.expiry.at if document.expiry else None) == cluster.expires_at
            assert (document.limits or {}) == cluster.limits
            identity = (document.name, document.description, document.tags or {}, document.account)
            assert identity == (cluster.name, cluster.description, cluster.tags, "prod")
            assert (document.keep_failed or 0, document.kubernetes_version) == (cluster.keep_failed, MINOR)
            assert (document.secret and document.secret.choice) == secret_choice(cluster)
            assert [pool.spec() for pool in document.pools] == [pool.spec() for pool in pools], manifest
            cluster_again = replace(cluster, tags=document.tags or {})
            assert own_cluster_manifest(cluster_again, document.profiles or (), pools, "prod") == manifest


def test_every_field_that_can_be_said_is_drawn(seed: int) -> None:
    """Nothing that a person may ask for is left out above: of settings, of groups and pools within, of the cluster."""
    registry.introduce()
    chance = Random(seed)
    pools = [pool_document(chance, "web") for _ in range(200)]
    assert undrawn(PoolCreate, pools) == []
    for driver, draw in DRAWN.items():
        model = loaded(cloud_kinds.cluster_kind_of(driver).settings)
        assert undrawn(model, [draw(chance) for _ in range(300)]) == [], driver
        clusters = [drawn_cluster(chance, driver, draw) for _ in range(40)]
        pool = drawn_pool(chance, "web")
        manifests = [own_cluster_manifest(cluster, drawn_profiles(chance), [pool]) for cluster in clusters]
        shown_fields = {name for manifest in manifests for name in manifest["spec"]}
        assert shown_fields == {to_camel(name) for name in OwnClusterSpec.model_fields}
    assert undrawn(EksSettings, [{"mirror": True, "node_groups": [{"name": "a"}]}])[:1] == ["region_name"]


def undrawn(model: type[BaseModel], documents: Sequence[Any], pointer: str = "") -> list[str]:
    """The fields of the model, and of the models within, that none of the documents has."""
    names: list[str] = []
    for name, part in model.model_fields.items():
        spellings = {name, to_camel(name)}
        drawn_values = [document[key] for document in documents for key in spellings & document.keys()]
        if not drawn_values:
            names.append(f"{pointer}{name}")
        entries = [entry for value in drawn_values for entry in (value if isinstance(value, list) else [value])]
        objects = [entry for entry in entries if isinstance(entry, Mapping)]
        for inner in models_of(part.annotation):
            names += undrawn(inner, objects, f"{pointer}{name}/") if objects else []
    return names


def models_of(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field's type names, within lists and unions too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_of(inner)]


def drawn_cluster(chance: Random, driver: str, draw: Callable[[Random], Settings]) -> Cluster:
    """A cluster whose settings are read as a request's are; those that the driver refuses are drawn again."""
    kind = cloud_kinds.cluster_kind_of(driver)
    while True:
        try:
            settings = settings_for(kind.cloud, "k8s", driver, "west", draw(chance))
        except InvalidInput:
            continue
        optional = {"tags": LABELS, "description": "what it is for", "keep_failed": 30}
        optional |= {"expires_at": "2027-01-01T00:00:00.000Z", "limits": {"usd_month": "900.5"}}
        secret = {"cluster": chance.choice(("west", "hub")), "namespace": "team-a"}
        role = chance.choice(("viewer", "operator", "admin"))
        optional |= {"kubeconfig_secret": {"cluster_id": "clu_2", **secret, "role": role}}
        return Cluster(
            id="clu_1",
            name="west",
            cluster_type="k8s",
            provider=kind.cloud,
            cloud_account_id=1,
            client_id="c",
            status="ready",
            settings=settings,
            created_at="",
            updated_at="",
            driver=driver,
            kubernetes_version=MINOR,
            **{"description": "", **sometimes(chance, optional)},
        )


def secret_choice(cluster: Cluster) -> SecretChoice | None:
    """The Secret of the cluster's record as somebody asks for it."""
    secret = cluster.kubeconfig_secret
    return SecretChoice(secret["cluster"], secret["namespace"], secret["role"]) if secret else None


def drawn_pool(chance: Random, name: str) -> Pool:
    """A pool with fields of all kinds; what is refused is drawn again."""
    while True:
        try:
            new: NewPool = read(PoolCreate, pool_document(chance, name)).new_pool()
        except InvalidInput:
            continue
        spec = {part.name: getattr(new, part.name) for part in fields(PoolSpec)}
        return Pool(id=f"clu_1/{name}", cluster_id="clu_1", name=name, created_at="", updated_at="", **spec)


def pool_document(chance: Random, name: str) -> Settings:
    """A request for a pool."""
    common = {
        "provider": "p",
        "requirements": [requirement(chance, own_words=False) for _ in range(chance.randint(0, 3))],
        "properties": {"allocation_strategy": "diversified"},
        "taints": taints(chance),
        "startup_taints": taints(chance),
        "labels": LABELS,
        "annotations": {"example.com/some_key": "some_Value"},
        "termination_grace_period": "5m",
        "expire_after": "Never",
        "kubelet_args": {"max-pods": "60"},
        "zones": [ZONES[0], ZONES[1]],
        "max_price": chance.choice(({"percent": 90}, {"usd_hour": 0.5})),
        "update_strategy": chance.choice(UPDATES),
        "disruption": {
            **disruption(chance, zones=True),
            **sometimes(chance, {"minimumSaving": 0.25, "paused": True}),
        },
    }
    dynamic = {"limits": {**limits(chance), "nodes": "90"}, "floor": 2, "headroom": {"cpu": "2"}, "weight": 7}
    kind = {"quantity": chance.randrange(5)} if chance.random() < 0.4 else sometimes(chance, dynamic)
    kind |= sometimes(chance, {"kind": "static" if "quantity" in kind else "dynamic"})
    return {"name": name, **sometimes(chance, common), **kind}


def drawn_profiles(chance: Random) -> list[dict[str, Any]]:
    """The profiles of a cluster, as its record has them."""
    optional = {"variables": {"some_name": "x", "replicas": 3}, "pack_values": {"server": {"someValue": {"a_b": 1}}}}
    profile = {"name": "base", "version": "1.0.0", "variables": {}, "pack_values": {}, **sometimes(chance, optional)}
    return [profile] if chance.random() < 0.5 else []


# --- settings of each driver ------------------------------------------------------------------------------------------


def ec2(chance: Random) -> Settings:
    groups = [
        {
            "name": name,
            "role": "worker",
            "min_size": chance.randrange(3),
            "max_size": chance.randint(3, 9),
            "instance_types": chance.sample(("t3.large", "m6i.large", "c6i.large"), chance.randint(1, 3)),
            **sometimes(
                chance,
                {
                    "labels": LABELS,
                    "taints": taints(chance),
                    "allocation_strategy": "diversified",
                    "capacity_type": "spot",
                    "zones": [ZONES[0]],
                    "max_price": chance.choice(({"percent": 90}, {"usd_hour": 0.5})),
                    "root_disk_gib": 100,
                    "update_strategy": chance.choice(UPDATES),
                },
            ),
        }
        for name in chance.sample(("workers", "batch-2"), chance.randrange(3))
    ]
    size = chance.choice((1, 3))
    control = {"name": "master", "role": "control", "min_size": size, "max_size": size, "instance_types": ["m5.large"]}
    groups += [control] if chance.random() < 0.3 else []
    return sometimes(
        chance,
        {
            "mirror": False,
            "key_pair": "my-key",
            "region_name": "us-east-1",
            "control_plane_instance_type": "t3.large",
            "control_plane_instance_types": ["t3.large", "m6i.large"],
            "control_plane_size": size,
            "control_plane_workloads": True,
            "vpc_cidr": "10.40.0.0/16",
            "vpc_id": "vpc-0123456789abcdef0",
            "subnet_id": "subnet-0123456789abcdef0",
            "subnets": [{"zone": ZONES[0], **chance.choice(SUBNETS)}],
            "zones": list(ZONES),
            "nat_gateways": chance.choice(("one", "per_zone")),
            "bastion": sometimes(
                chance, {"enabled": True, "instance_type": "t3.nano", "image": None, "protocol": "ssh"}
            ),
            "autoscaler_node_groups": groups,
            "integrations": ["jupyterhub"],
            "ssh_cidrs": ["10.0.0.0/8"],
            "api_cidrs": ["10.0.0.0/8"],
            "public_control_plane": True,
            "etcd_volume_gib": 40,
            "etcd_snapshots": 3,
            "etcd_backup": sometimes(chance, BACKUP),
            "cloud_controllers": False,
            "image": "ami-0123456789abcdef0",
            "repave_approval": "required",
            "overlay": sometimes(chance, OVERLAY),
        },
    )


def eks(chance: Random) -> Settings:
    names = (("system", "system"), ("gpu", "gpu"), ("more", "system"))
    groups = [
        {
            "name": name,
            "role": role,
            "instance_type": "m6i.large",
            **sometimes(
                chance,
                {
                    "disk_gib": chance.choice((None, 50)),
                    "count": 2,
                    "min_size": 1,
                    "max_size": 12,
                    "zones": [ZONES[1]],
                    "fabric": "efa",
                    "accelerator_type": "nvidia-l4",
                    "capacity_reservation_id": "cr-0123456789abcdef0",
                    "labels": LABELS,
                    "taints": taints(chance),
                    "builtin": True,
                },
            ),
        }
        for name, role in chance.sample(names, chance.randint(1, 3))
    ]
    return {
        "node_groups": groups,
        **sometimes(
            chance,
            {
                "mirror": False,
                "region_name": "us-west-2",
                "vpc_cidr": "10.60.0.0/16",
                "subnet_cidrs": ["10.60.0.0/20", "10.60.16.0/20"],
                "zones": list(ZONES[:2]),
                "nat_gateways": "zone",
                "public_access_cidrs": ["10.0.0.0/8"],
                "endpoint": "private",
                "private_access_cidrs": ["10.61.0.0/16"],
                "block_storage": True,
                "control_plane_logs": ["audit"],
                "deletion_protection": True,
                "support": "extended",
                "addon_versions": {"vpc-cni": "v1.21.1-eksbuild.1"},
                "shared_storage": True,
                "namespace": "platform",
            },
        ),
    }


def cudo(chance: Random) -> Settings:
    group: Mapping[str, Any] = {
        "id": "workers",
        "role": "worker",
        "min_size": 1,
        "max_size": 3,
        "vcpus": 4,
        "memory_gib": 8,
        "boot_disk_size_gib": 50,
        "data_center_id": "gb-bournemouth",
        "machine_type": "intel-broadwell",
        **sometimes(chance, {"gpus": 2, "gpu_model": "A100", "labels": LABELS}),
    }
    size = chance.choice(("sm", "md", "lg"))
    return sometimes(
        chance,
        {
            "mirror": False,
            "autoscaler_node_groups": [dict(group)],
            "control_plane_size": size,
            "instance_type": f"vantage-k8s-control-{size}",
            "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB0=",
            "dev_mode": True,
            "no_vault": True,
            "overlay": sometimes(chance, OVERLAY),
            "api_cidrs": ["10.0.0.0/8"],
            "ssh_cidrs": ["10.0.0.0/8"],
        },
    )


DRAWN: Mapping[str, Callable[[Random], Settings]] = {"ec2": ec2, "eks": eks, "cudo": cudo}
