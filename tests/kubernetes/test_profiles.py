"""Profiles on a real API server: packs are applied in order by an account of their own, which is only there with a
profile; drift is shown; a changed version changes what stands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from local.kubernetes.real.control_plane import ControlPlane
from stockyard.domain.profiles.pack_rights import OPENED, OPENED_FOR
from stockyard.domain.values.rights import ADMIN, OPERATOR
from stockyard.operations.profiles import clusters
from stockyard.operations.profiles.profiles import find_profile
from stockyard.ports import CloudWork
from stockyard.ports.clusters import PACKS_MANAGER
from stockyard.providers.clusters.ec2 import own_api
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.kubernetes.packs import ACCOUNT, IMPERSONATION, NAMESPACE
from tests.harness.worlds.ports import with_ports
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.rigs import until
from tests.unit.operations.clusters.managed_world import USER
from tests.unit.operations.profiles.packs_world import PacksProvider, PacksWorld, packs_world

SPACE = "packs-test"
CHOICE = {"name": "site", "variables": {"mode": "vxlan"}}
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lights.packs.test}
spec:
  group: packs.test
  scope: Namespaced
  names: {plural: lights, singular: light, kind: Light}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {on: {type: boolean}}}}}}
"""
ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: packs-test-reader}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get]}]
"""
SERVER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: 0
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {containers: [{name: server, image: "{{ .values.image }}"}]}
"""


def config(name: str, mode: str = "{{ .profile.var.mode }}") -> str:
    return f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{mode: '{mode}'}}}}"


def pack(layer: str, name: str, *texts: str, **more: Any) -> dict[str, Any]:
    manifests = [{"name": f"m{number}", "content": text} for number, text in enumerate(texts)]
    return {"layer": layer, "name": name, "tag": "1.0", "namespace": SPACE, "manifests": manifests, **more}


SPACES = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: {SPACE}}}}}"
# What needs the definition and the namespace is written first: the order is that of the layers.
PACKS = [
    pack("cni", "net", config("net"), DEFINITION, SPACES),
    pack("csi", "classes", config("classes"), ROLE),
    pack("addon", "lights", "{apiVersion: packs.test/v1, kind: Light, metadata: {name: door}, spec: {on: true}}"),
    pack("addon", "server", SERVER, config("server"), values="image: nginx:1.27"),
]
VARIABLES = [{"name": "mode", "required": True}]


@dataclass
class RealProvider(PacksProvider):
    """The driver of clusters on EC2, as far as it speaks to their API."""

    plane: ControlPlane | None = None

    def packs_api(self, work: CloudWork) -> Any:
        time.sleep(0.05)  # the workflow's waits pass on the test's clock
        return own_api.packs_api(self._credentials(work), KubernetesApi)

    def forget_packs(self, work: CloudWork) -> None:
        own_api.forget_packs(self._credentials(work), KubernetesApi)

    def _credentials(self, work: CloudWork) -> CloudWork:
        assert self.plane is not None
        cluster = replace(work.cluster, endpoint=self.plane.url)
        return replace(work, cluster=cluster, kubeconfig=self.plane.kubeconfig.read_text())


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[PacksWorld]:
    result, provider = packs_world(), RealProvider(plane=cluster.plane)
    result.world.provider, result.provider = provider, provider
    result.world.services = with_ports(result.services, cluster_drivers={"eks": provider})
    yield result
    for thing in (("crd", "lights.packs.test"), ("clusterrole", "packs-test-reader"), ("namespace", SPACE)):
        cluster.plane.kubectl("delete", *thing, "--ignore-not-found", "--wait=false")


def object_of(cluster: Cluster, kind: str, name: str, namespace: str = "") -> Any:
    """The object, None where there is none."""
    where = ("-n", namespace) if namespace else ()
    answer = cluster.plane.kubectl("get", kind, name, *where, "-o", "json", "--show-managed-fields", check=False)
    return json.loads(answer.stdout) if answer.returncode == 0 else None


def revision(cluster: Cluster, name: str) -> int:
    return int(object_of(cluster, "configmap", name, SPACE)["metadata"]["resourceVersion"])


def test_packs_are_applied_in_order_by_an_account_that_is_only_there_with_a_profile(
    cluster: Cluster, world: PacksWorld
) -> None:
    world.make(name="site", variables=VARIABLES, packs=PACKS)
    world.create()
    assert world.drive("provision_managed") == "ready"
    # Another file's profile may just have gone: its namespace goes a while after it.
    until(lambda: object_of(cluster, "namespace", NAMESPACE) is None, 120)
    world.put(CHOICE)
    assert world.drive() == "changed", world.operation.error
    assert set(world.conditions().values()) == {"Ready"}
    assert object_of(cluster, "serviceaccount", ACCOUNT, NAMESPACE)["automountServiceAccountToken"] is False
    assert object_of(cluster, "clusterrolebinding", IMPERSONATION)["subjects"][0]["name"] == ACCOUNT
    assert revision(cluster, "net") < revision(cluster, "classes") < revision(cluster, "server")
    for kind, name in (("configmap", "net"), ("light", "door"), ("deployment", "server")):
        managers = {entry["manager"] for entry in object_of(cluster, kind, name, SPACE)["metadata"]["managedFields"]}
        assert PACKS_MANAGER in managers
    assert object_of(cluster, "configmap", "net", SPACE)["data"] == {"mode": "vxlan"}
    assert object_of(cluster, "clusterrole", "packs-test-reader") is not None


def test_drift_is_shown_and_left_until_the_next_change(cluster: Cluster, world: PacksWorld) -> None:
    clusters.compare(world.services, world.cluster, USER)
    assert world.record.drift == ()
    edit = '{"data": {"mode": "none"}}'
    cluster.plane.kubectl("patch", "configmap", "net", "-n", SPACE, "--type=merge", "-p", edit)
    cluster.plane.kubectl("delete", "light", "door", "-n", SPACE)
    cluster.plane.kubectl("label", "configmap", "classes", "-n", SPACE, "somebody=else")
    clusters.compare(world.services, world.cluster, USER)
    assert world.record.drift == (
        f"net: ConfigMap {SPACE}/net is different",
        f"lights: Light {SPACE}/door is not there",
    )
    assert object_of(cluster, "configmap", "net", SPACE)["data"] == {"mode": "none"}
    world.put(CHOICE)
    assert world.drive() == "changed", world.operation.error
    assert object_of(cluster, "configmap", "net", SPACE)["data"] == {"mode": "vxlan"}
    assert object_of(cluster, "light", "door", SPACE) is not None
    assert object_of(cluster, "configmap", "classes", SPACE)["metadata"]["labels"]["somebody"] == "else"


def test_a_changed_version_changes_and_removes(cluster: Cluster, world: PacksWorld) -> None:
    net, classes, _, server = PACKS
    later = [{**net, "tag": "1.1"}, classes, {**server, "values": "image: nginx:1.28"}]
    profile = find_profile(world.services, "site")
    world.add(profile, version="2.0.0", variables=VARIABLES, packs=later)
    plan = world.plan({"profiles": [CHOICE]})
    image = next(change for change in plan["changes"] if change["pointer"].endswith("/image"))
    assert (image["before"], image["after"]) == ("nginx:1.27", "nginx:1.28")
    assert plan["deletes"] == [{"kind": "Light", "name": f"{SPACE}/door"}]
    world.put(CHOICE)
    assert world.drive() == "changed", world.operation.error
    assert object_of(cluster, "light", "door", SPACE) is None
    containers = object_of(cluster, "deployment", "server", SPACE)["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"] == "nginx:1.28"


def test_an_operators_pack_stands_where_an_administrator_has_opened_the_namespace(
    cluster: Cluster, world: PacksWorld
) -> None:
    world.rights = OPERATOR
    world.make(name="mine", variables=[], packs=[pack("addon", "mine", config("mine", "x"))])
    world.put(CHOICE, {"name": "mine"})
    assert world.drive() != "changed"
    (status,) = [status for status in world.record.packs if status.name == "mine"]
    assert status.condition == "Failed"
    assert f"ConfigMap {SPACE}/mine: metadata.namespace: {SPACE} is not open" in status.message
    cluster.plane.kubectl("label", "namespace", SPACE, f"{OPENED}={OPENED_FOR}")
    world.put(CHOICE, {"name": "mine"})
    assert world.drive() == "changed", world.operation.error
    assert object_of(cluster, "configmap", "mine", SPACE)["data"] == {"mode": "x"}
    clusters.compare(world.services, world.cluster, USER)
    assert world.record.drift == ()
    world.put(CHOICE)
    assert world.drive() == "changed", world.operation.error
    assert object_of(cluster, "configmap", "mine", SPACE) is None
    world.rights = ADMIN


def test_nothing_is_left_without_a_profile(cluster: Cluster, world: PacksWorld) -> None:
    world.put()
    assert world.drive() == "changed", world.operation.error
    for kind, name in (("clusterrolebinding", IMPERSONATION), ("clusterrole", "packs-test-reader")):
        assert object_of(cluster, kind, name) is None
    for kind, name in (("namespace", NAMESPACE), ("namespace", SPACE), ("crd", "lights.packs.test")):
        until(lambda kind=kind, name=name: object_of(cluster, kind, name) is None)
