"""The objects phase: what stands in the cluster itself: the agent, the class of shared volumes, drivers of devices.

It is applied by the cluster's API, to which the tenant's role is admitted as the one that made the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.errors import CredentialsRevoked, VendorRefused, VendorTimeout, VendorUnavailable
from stockyard.machines import manifests
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import cluster_tokens
from stockyard.providers.clouds.aws.catalog import volume_keys
from stockyard.providers.clouds.aws.catalog.type_labels import GPU_NAME
from stockyard.providers.clusters.eks import balancers, names, storage
from stockyard.providers.clusters.eks.access import endpoint
from stockyard.providers.clusters.eks.building import Builder
from stockyard.providers.clusters.eks.configuration import EFA, has_block_storage, has_storage, node_groups, region
from stockyard.providers.clusters.eks.groups import GPU_LABEL
from stockyard.providers.kubernetes import packs
from stockyard.providers.kubernetes.client import KubernetesApi

PHASE = "objects"
MakeApi = Callable[[str, str, Callable[[], str]], KubernetesApi]
"""Makes a client of the API at an address, with an authority's certificate and what gives tokens."""
_MANIFESTS = Path(__file__).parent / "manifests"


def ensure(builder: Builder, make_api: MakeApi) -> Outcome:
    """Apply everything. A cluster that cannot be reached says which of its settings may be why."""
    api = _admin(builder, make_api)
    documents = [*builder.work.agent, *own_documents(builder), *drivers(builder.work.cluster)]
    try:
        for document in documents:
            api.apply(document)
        balancers.apply(api, builder.work.installation)
    except (VendorTimeout, VendorUnavailable) as error:
        hint = endpoint.hint(builder.work.cluster)
        if hint is None:
            raise
        raise type(error)(error.detail, code=error.code, hint=hint) from error
    finally:
        api.close()
    return Outcome(True, f"{len(documents)} objects are applied")


def of_cluster(builder: Builder, make_api: MakeApi) -> KubernetesApi | None:
    """The cluster's API with tokens of the tenant's role; None while nobody knows where it is."""
    cluster = builder.work.cluster
    if not cluster.endpoint or not cluster.certificate_authority:
        return None
    own = builder.calls.clients.session.get_credentials()
    if own is None:
        raise CredentialsRevoked("the session in the account has no keys")
    credentials = own.get_frozen_credentials()
    keys = {
        "AccessKeyId": credentials.access_key,
        "SecretAccessKey": credentials.secret_key,
        "SessionToken": credentials.token,
    }

    def token() -> str:
        return cluster_tokens.presign(keys, names.cluster_name(cluster), region(cluster), builder.now)

    return make_api(cluster.endpoint, cluster.certificate_authority, token)


def packs_api(builder: Builder, make_api: MakeApi) -> packs.Account:
    """The cluster's API as the account that applies packs."""
    cluster, admin = builder.work.cluster, _admin(builder, make_api)
    endpoint, authority = str(cluster.endpoint), str(cluster.certificate_authority)
    return packs.account_api(admin, lambda token: make_api(endpoint, authority, token))


def forget_packs(builder: Builder, make_api: MakeApi) -> None:
    """Remove the account that applies packs."""
    packs.forget(_admin(builder, make_api))


def _admin(builder: Builder, make_api: MakeApi) -> KubernetesApi:
    api = of_cluster(builder, make_api)
    if api is None:
        raise VendorRefused("the cluster's endpoint is not known", hint="Resume from the phase control_plane.")
    return api


def own_documents(builder: Builder) -> Iterator[dict[str, Any]]:
    """The default class of volumes, and the one of those that many pods write, as Modelplane has it."""
    if has_block_storage(builder.work.cluster):
        yield manifests.storage_class(volume_keys.of_account(builder.work.account, builder.calls.region))
    if not has_storage(builder.work.cluster):
        return
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": storage.STORAGE_CLASS},
        "provisioner": "efs.csi.aws.com",
        "parameters": {
            "provisioningMode": "efs-ap",
            "fileSystemId": storage.file_system(builder),
            "directoryPerms": "700",
        },
        "volumeBindingMode": "Immediate",
    }


def drivers(cluster: Cluster) -> Iterator[Mapping[str, Any]]:
    """Objects that make GPUs and EFA known to the scheduler. Pools may bring GPUs at any time, EFA only groups have."""
    for document in manifest("nvidia-device-plugin"):
        yield _on_nodes_with_gpus(document)
    if any(group.get("fabric") == EFA for group in node_groups(cluster)):
        yield from manifest("aws-dranet")


@cache
def manifest(name: str) -> tuple[Mapping[str, Any], ...]:
    """The documents of one of the folder's files."""
    return tuple(json.loads((_MANIFESTS / f"{name}.json").read_text(encoding="utf-8")))


def remove_balancers(api: KubernetesApi) -> str | None:
    """Let the cluster remove its own load balancers, which have the cluster's marks. What is waited for. Raises
    ``VendorError`` where the cluster does not answer or refuses."""
    services = [item for item in api.list("v1", "Service") if item.get("spec", {}).get("type") == "LoadBalancer"]
    for service in services:
        meta = service["metadata"]
        api.delete("v1", "Service", meta["name"], meta.get("namespace", ""))
    labels = (f"{item['metadata'].get('namespace')}/{item['metadata']['name']}" for item in services)
    return f"the load balancers of the services {', '.join(labels)} are being deleted" if services else None


def _on_nodes_with_gpus(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, its pods on nodes with GPUs alone: those of groups, and those of pools."""
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in (GPU_LABEL, GPU_NAME)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    changed: dict[str, Any] = json.loads(json.dumps(document))
    changed["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    return changed
