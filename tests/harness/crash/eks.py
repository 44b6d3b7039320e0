"""EKS for the crash world: moto with its corrections, and the cluster's own API, whose requests pass the tap too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx

from local.aws.accounts import REGION
from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.scaling_groups import scaling_backends
from local.aws.corrections.file_systems import file_backends
from local.aws.corrections.pace import paced
from local.kubernetes.api import KubeApi
from stockyard.domain.records import Cluster
from stockyard.providers.clusters.eks.groups import POOL_LABEL, node_labels
from stockyard.providers.kubernetes.client import KubernetesApi
from tests.harness.crash.cloud import Story
from tests.harness.crash.ec2 import TENANT_ACCOUNT, CrashEc2
from tests.harness.crash.faults import Call, Errors, Tap
from tests.harness.worlds.memory import FixedClock

_VERBS = {"GET": "Get", "POST": "Create", "PATCH": "Apply", "DELETE": "Delete"}
_SECONDS: Mapping[str, float] = {
    "cluster": 600.0,
    "cluster deletion": 120.0,
    "node group": 90.0,
    "node group deletion": 60.0,
    "add-on": 30.0,
    "mount target": 45.0,
    "file system": 10.0,
}
"""How long AWS takes, by the life's own clock."""


BACKENDS = (eks_backends, file_backends, scaling_backends)
"""What has what the account has of services besides EC2."""

_TRAINING: Mapping[str, Any] = {
    "name": "training",
    "role": "gpu",
    "instance_type": "p4d.24xlarge",
    "accelerator_type": "nvidia-a100",
    "fabric": "efa",
    "count": 0,
    "zones": [f"{REGION}a"],
}
_BATCH: Mapping[str, Any] = {"name": "batch", "role": "system", "instance_type": "m6i.2xlarge", "count": 0}


class _Refused(Exception):
    """Refused or throttled request, as the tap makes it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


_ERRORS = Errors(
    lambda: httpx.ReadTimeout("no answer in time"),
    lambda: _Refused(429, "TooManyRequests"),
    lambda: _Refused(403, "Forbidden"),
)


class _Transport(httpx.BaseTransport):
    """The requests of the product's client, each of them a call of the tap such as ``kubernetes.apply_deployments``."""

    def __init__(self, cloud: CrashEks, tap: Tap) -> None:
        self._cloud, self._tap = cloud, tap

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        name = f"kubernetes.{_name(request)}"
        self._tap.parameters = {}
        target = str(request.url.raw_path, "ascii")
        try:
            status, answer = self._tap.around(name, lambda: self._cloud.answer(request, target, body), _ERRORS)
        except _Refused as refused:
            status, answer = refused.status, {"kind": "Status", "reason": refused.reason, "code": refused.status}
        return httpx.Response(status, json=answer)


def _name(request: httpx.Request) -> str:
    """``ApplyDeployments`` for example, as calls to vendors are called; reading begins with ``Get``."""
    parts = urlsplit(str(request.url)).path.strip("/").split("/")
    inside = parts[2:] if parts[0] == "api" else parts[3:]
    if not inside:
        return "GetResources"
    if len(inside) > 2 and inside[0] == "namespaces":
        inside = inside[2:]
    return f"{_VERBS[request.method]}{inside[0].capitalize()}"


def _pool(document: Mapping[str, Any]) -> str:
    """The pool that a managed group is of, by the label of its nodes."""
    return str(document["labels"][POOL_LABEL])


class CrashEks(CrashEc2):
    """A tenant's AWS account in which clusters on EKS are made."""

    rows = "managed"
    body: Mapping[str, Any] = {
        "name": "demo",
        "description": "d",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "driver": "eks",
        "kubernetes_version": "1.34",
        "settings": {
            "region_name": REGION,
            "subnet_cidrs": ["10.0.0.0/20", "10.0.16.0/20"],
            "node_groups": [_TRAINING],
        },
    }
    stories: Mapping[str, Story] = {
        "clean": Story(),
        "changed": Story(
            changes=(
                {"settings": {"node_groups": [{**_TRAINING, "max_size": 4, "labels": {"team": "a"}}, _BATCH]}},
                {"kubernetes_version": "1.35", "settings": {"public_access_cidrs": ["198.51.100.0/24"]}},
                {"settings": {"node_groups": [{**_BATCH, "instance_type": "m6i.4xlarge"}]}},
            )
        ),
        "not_changed": Story(
            (Call("change:node_groups", "eks.CreateNodegroup", 1),),
            changes=({"settings": {"node_groups": [_TRAINING, _BATCH]}},),
        ),
        "not_upgraded": Story(
            (Call("upgrade:control_plane", "eks.UpdateClusterVersion", 1),), changes=({"kubernetes_version": "1.35"},)
        ),
        "undone": Story((Call("provision:network", "ec2.CreateNatGateway", 1),)),
        "blocked": Story((Call("delete:network", "ec2.DeleteVpc", 1),)),
    }

    def __init__(self) -> None:
        super().__init__()
        self._kube = KubeApi()
        self._token = ""

    @contextmanager
    def installed(self, tap: Tap, clock: FixedClock) -> Iterator[None]:
        """See ``CrashCloud.installed``. The pauses of the client of the cluster's API pass at once."""

        def connected(api: KubernetesApi) -> httpx.Client:
            return httpx.Client(base_url=api._server, transport=_Transport(self, tap))

        with (
            super().installed(tap, clock),
            patch.object(KubernetesApi, "_connected", connected),
            patch("stamina._core._smart_sleep", lambda _: None, create=True),
        ):
            yield

    @contextmanager
    def begin(self, story: str) -> Iterator[None]:
        """See ``CrashCloud.begin``."""
        self._kube = KubeApi(now=self._clock.now)
        self._token = self._kube.administrator()
        with ExitStack() as life:
            life.enter_context(super().begin(story))
            life.enter_context(paced(lambda kind: _SECONDS.get(kind, 0.0), lambda: self._clock.now().timestamp()))
            yield

    def differences(self, cluster: Cluster) -> list[str]:
        """See ``CrashCloud.differences``."""
        (stands,) = eks_backends[TENANT_ACCOUNT][REGION].clusters.values()
        groups = {str(group["name"]): group for group in cluster.settings["node_groups"]}
        documents = {_pool(thing.document): thing.document for thing in stands.groups.values()}
        pairs: dict[str, tuple[Any, Any]] = {
            "version": (stands.document["version"], cluster.kubernetes_version),
            "node groups": (sorted(_pool(thing.document) for thing in stands.groups.values()), sorted(groups)),
            "public CIDRs": (
                stands.document["resourcesVpcConfig"]["publicAccessCidrs"],
                cluster.settings["public_access_cidrs"] or ["0.0.0.0/0"],
            ),
        }
        for name, group in groups.items():
            document = documents.get(name, {})
            pairs[f"version of {name}"] = (document.get("version"), cluster.kubernetes_version)
            pairs[f"most of {name}"] = (document.get("scalingConfig", {}).get("maxSize"), group["max_size"])
            pairs[f"labels of {name}"] = (document.get("labels"), node_labels(group))
        return [f"{part} is {is_now}, not {target}" for part, (is_now, target) in pairs.items() if is_now != target]

    def _empty(self) -> None:
        super()._empty()
        for backends in BACKENDS:
            backends[TENANT_ACCOUNT][REGION].reset()

    def answer(self, request: httpx.Request, target: str, body: bytes) -> tuple[int, Any]:
        """Answer of the cluster's API to its administrator."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        return self._kube.request(request.method, target, {**headers, "authorization": f"Bearer {self._token}"}, body)
