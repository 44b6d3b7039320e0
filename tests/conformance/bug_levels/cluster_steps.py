"""Steps of a case of the level ``cluster``, carried out in its yard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError
from moto.ec2.models import ec2_backends

from local.aws.accounts import REGION
from local.kubernetes.placing.volumes import LATE
from local.kubernetes.store import Key
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, INSTANCE_TYPE
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from tests.conformance.bug_levels.plane import NAMESPACE, App, Daemon
from tests.conformance.bug_levels.reading import Json, Unreadable, check_fields, names_of
from tests.conformance.bug_levels.scheduling import STORAGE
from tests.conformance.bug_levels.yard import Yard
from tests.harness.crash.ec2 import TENANT_ACCOUNT
from tests.harness.crash.faults import Call

PROVIDERS = ("ec2",)
IMAGES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "arm64"}
"""Kubernetes' names of architectures, and EC2's."""
JOIN_SECONDS = 120
"""How long a claim may take until it is available."""
PRIORITY = "scheduling.k8s.io"
_LAUNCHES = ("ec2.RunInstances", "ec2.CreateFleet")
_CLUSTER = frozenset({"pools", "provider", "types", "images", "refuse", "capacity_types"})
_OWN_OF_POOL = frozenset(
    {
        "name",
        "limits",
        "architectures",
        "capacity_type",
        "consolidate_after",
        "consolidation_policy",
        "budget",
        "budgets",
        "requirements",
    }
)
_AS_THEY_ARE = frozenset({"name", "limits", "labels", "taints", "startup_taints", "weight", "floor", "headroom"})
"""Fields of a pool that are sent as the case has them."""
_TEMPLATE = frozenset(
    {"cpu", "memory", "type", "labels", "node_selector", "tolerations", "priority_class", "host_port", "spec"}
)
_APP = _TEMPLATE | {"name", "count", "replicas", "claims", "namespace"}


class Steps:
    """The steps, by name. ``hold`` is called by ``until`` with its conditions."""

    def __init__(self, yard: Yard, hold: Callable[[Mapping[str, Json]], None]) -> None:
        self.yard, self.plane, self._hold = yard, yard.plane, hold
        self._refused: tuple[str, ...] = ()
        self.known: Mapping[str, Callable[[Any], None]] = {
            name: getattr(self, f"_{name}")
            for name in (
                "cluster", "pods", "until", "cordon", "uncordon", "taint", "untaint", "condition", "allocatable",
                "csi_node", "storage_class", "limit_range", "daemon_set", "stateful_set", "scale", "delete_node",
                "priority_class", "pool_limit", "relax", "wait",
            )
        }  # fmt: skip

    def play(self, step: Mapping[str, Json]) -> None:
        """Do one step. Raises ``Unreadable`` for one that is not known."""
        if not isinstance(step, Mapping) or len(step) != 1:
            raise Unreadable(f"a step has one name, not {step!r}")
        ((name, value),) = step.items()
        if name not in self.known:
            raise Unreadable(f"unknown step {name}")
        self.known[name](value)

    # --- our side -----------------------------------------------------------------------------------------------------

    def _cluster(self, value: Mapping[str, Json]) -> None:
        check_fields("cluster", value, _CLUSTER)
        kind = value.get("provider", "ec2")
        if kind not in PROVIDERS:
            raise Unreadable(f"unknown provider {kind}")
        block: dict[str, Json] = {"cloudAccount": 1, "instanceTypes": value["types"]}
        if "capacity_types" in value:
            block["capacityTypes"] = value["capacity_types"]
        images = value.get("images", [])
        if len(images) == 1:
            block["image"] = self._image(images[0])
        document = {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": kind}}
        self.yard.ask("POST", "/v1/apply", [{**document, "spec": {kind: block}}])
        for pool in value["pools"]:
            self.yard.ask("POST", f"/v1/clusters/{self.yard.cluster.id}/pools", self._pool(pool, kind))
        self._refuse(value.get("refuse", {}))
        self._pass(5)

    def _image(self, architecture: str) -> str:
        images = ec2_backends[TENANT_ACCOUNT][REGION].amis.values()
        name = IMAGES[architecture]
        return min(str(image.id) for image in images if image.architecture == name and image.platform != "windows")

    def _pool(self, document: Mapping[str, Json], provider: str) -> dict[str, Json]:
        check_fields("pool", document, _OWN_OF_POOL | _AS_THEY_ARE)
        requirements = list(document.get("requirements", []))
        for field, key in (("architectures", ARCH), ("capacity_type", CAPACITY_TYPE)):
            if field in document:
                requirements.append({"key": key, "operator": "In", "values": names_of(document[field])})
        names = ("consolidate_after", "consolidation_policy", "budgets")
        disruption = {name: document[name] for name in names if name in document}
        if "budget" in document:
            disruption["budgets"] = [{"nodes": document["budget"]}]
        own = {name: document[name] for name in _AS_THEY_ARE & document.keys()}
        body = {**own, "kind": "dynamic", "provider": provider, "requirements": requirements}
        return {**body, "disruption": disruption} if disruption else body

    def _refuse(self, document: Mapping[str, Json]) -> None:
        check_fields("refuse", document, ("replacements", "launches"))
        replacements, launches = document.get("replacements", []), document.get("launches", [])

        def look(call: Call) -> None:
            if call.name not in _LAUNCHES:
                return
            types = [*launches, *(replacements if self._is_replacement() else ())]
            sent = repr(self.yard.world.tap.parameters)
            refused = next((name for name in types if f"'{name}'" in sent), None)
            if refused is not None:
                text = f"The instance type {refused} cannot be launched with these parameters."
                error: Any = {"Error": {"Code": "InvalidParameterCombination", "Message": text}}
                raise ClientError(error, call.name)

        self.yard.world.tap.on_call = look

    def _is_replacement(self) -> bool:
        """Whether the claim that is being worked on comes in the place of others."""
        records = list(self.yard.services.store.list(ClusterDisruption).items)
        replacements = {claim for record in records for claim in record.replacements}
        return self.yard.at_work in replacements

    def _pool_limit(self, value: Mapping[str, Json]) -> None:
        limits = value.get("limits") or {name: amount for name, amount in value.items() if name != "pool"}
        path = f"/v1/clusters/{self.yard.cluster.id}/pools/{value['pool']}"
        self.yard.ask("PATCH", path, {"limits": limits})

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _pods(self, value: list[Mapping[str, Json]]) -> None:
        for document in value:
            self._add(document, stateful=False)

    def _stateful_set(self, value: Mapping[str, Json]) -> None:
        self._add(value, stateful=True)

    def _add(self, document: Mapping[str, Json], *, stateful: bool) -> None:
        check_fields("pods", document, _APP)
        name, count = document["name"], document.get("replicas", document.get("count", 1))
        namespace, claims = document.get("namespace", NAMESPACE), tuple(document.get("claims", ()))
        template = _template(document, name)
        self.plane.apps[name] = App(name, template, count, namespace, stateful, claims)

    def _daemon_set(self, value: Mapping[str, Json]) -> None:
        check_fields("daemon_set", value, _TEMPLATE | {"name", "namespace"})
        name, namespace = value["name"], value.get("namespace", NAMESPACE)
        template = _template(value, name)
        template["spec"].setdefault("tolerations", [{"operator": "Exists"}])
        document = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template},
        }
        self.plane.api.store.create(Key("apps", "daemonsets", namespace, name), document)
        self.plane.daemons.append(Daemon(name, namespace, template))

    def _limit_range(self, value: Mapping[str, Json]) -> None:
        check_fields("limit_range", value, ("namespace", "default_request", "default"))
        requests = {**value.get("default", {}), **value.get("default_request", {})}
        self.plane.defaults[value.get("namespace", NAMESPACE)] = requests

    def _priority_class(self, value: Mapping[str, Json]) -> None:
        check_fields("priority_class", value, ("name", "value", "default"))
        document = {"apiVersion": f"{PRIORITY}/v1", "kind": "PriorityClass", "value": value["value"]}
        document["globalDefault"] = bool(value.get("default", False))
        self.plane.api.store.create(Key(PRIORITY, "priorityclasses", "", value["name"]), document)

    def _scale(self, value: Mapping[str, Json]) -> None:
        check_fields("scale", value, ("pods", "stateful_set", "count", "replicas"))
        app = self.plane.apps[value.get("pods") or value["stateful_set"]]
        app.replicas = value["count"] if "count" in value else value["replicas"]

    def _relax(self, value: Mapping[str, Json]) -> None:
        """A rollout without a rule: pods of the new template come in the place of the old ones."""
        check_fields("relax", value, ("pods", "drop"))
        app = self.plane.apps[value["pods"]]
        spec = {**app.template["spec"]}
        for name in names_of(value["drop"]):
            if name == "type":
                spec["nodeSelector"] = {k: v for k, v in spec.get("nodeSelector", {}).items() if k != INSTANCE_TYPE}
            elif name in _DROPPED:
                spec.pop(_DROPPED[name], None)
            else:
                raise Unreadable(f"relax: unknown {name}")
        app.template = {**app.template, "spec": spec}
        for pod in self.plane.pods_of(app.name):
            self.plane.end(pod)

    # --- volumes ------------------------------------------------------------------------------------------------------

    def _storage_class(self, value: Mapping[str, Json]) -> None:
        check_fields("storage_class", value, ("name", "provisioner", "binding", "provision_after_seconds", "zones"))
        self.plane.scheduling.storage_class(
            value["name"],
            value["provisioner"],
            value.get("binding", LATE),
            float(value.get("provision_after_seconds", 1)),
            value.get("zones", ()),
        )

    def _csi_node(self, value: Mapping[str, Json]) -> None:
        check_fields("csi_node", value, ("node", "driver", "count"))
        for name in self._nodes(value["node"]):
            driver = {"name": value["driver"], "nodeID": name, "allocatable": {"count": value["count"]}}
            document = {"apiVersion": f"{STORAGE}/v1", "kind": "CSINode", "spec": {"drivers": [driver]}}
            key, store = Key(STORAGE, "csinodes", "", name), self.plane.api.store
            (store.replace if key in store.objects else store.create)(key, document)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _nodes(self, selection: Json) -> list[str]:
        """The names of nodes, once their claims are available: nobody does anything to a machine that still joins."""
        for _ in range(JOIN_SECONDS):
            if all(claim.phase == AVAILABLE or claim.deleting for claim in self.yard.claims()):
                break
            self.yard.second()
        if selection == "all nodes":
            return sorted(self.plane.nodes())
        nodes = []
        for text in names_of(selection):
            app = text.removeprefix("node of ")
            names = [pod["spec"]["nodeName"] for pod in self.plane.pods_of(app) if pod["spec"].get("nodeName")]
            if app == text or not names:
                raise Unreadable(f"{text!r} is not the node of a pod that runs")
            nodes.append(names[0])
        return nodes

    def _cordon(self, value: Json) -> None:
        for name in self._nodes(_node_of(value)):
            self.plane.change("nodes", name, lambda node: node["spec"].update(unschedulable=True))

    def _uncordon(self, value: Json) -> None:
        for name in self._nodes(_node_of(value)):
            self.plane.change("nodes", name, lambda node: node["spec"].pop("unschedulable", None))

    def _taint(self, value: Mapping[str, Json]) -> None:
        check_fields("taint", value, ("node", "key", "value", "effect"))
        taint = {name: text for name, text in value.items() if name != "node"}

        def put(node: Any) -> None:
            node["spec"]["taints"] = [*(node["spec"].get("taints") or ()), taint]

        for name in self._nodes(value["node"]):
            self.plane.change("nodes", name, put)

    def _untaint(self, value: Mapping[str, Json]) -> None:
        check_fields("untaint", value, ("node", "key"))

        def take(node: Any) -> None:
            taints = node["spec"].get("taints") or ()
            node["spec"]["taints"] = [taint for taint in taints if taint["key"] != value["key"]]

        for name in self._nodes(value["node"]):
            self.plane.change("nodes", name, take)

    def _condition(self, value: Mapping[str, Json]) -> None:
        check_fields("condition", value, ("node", "type", "status"))
        for name in self._nodes(value["node"]):
            self.plane.set_condition(name, value["type"], str(value["status"]))

    def _allocatable(self, value: Mapping[str, Json]) -> None:
        amounts = {resource: str(amount) for resource, amount in value.items() if resource != "node"}

        def shrink(node: Any) -> None:
            node["status"]["allocatable"] = {**node["status"]["allocatable"], **amounts}

        for name in self._nodes(value["node"]):
            self.plane.change("nodes", name, shrink)

    def _delete_node(self, value: Json) -> None:
        for name in self._nodes(_node_of(value)):
            self.plane.remove_node(name)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _until(self, value: Mapping[str, Json]) -> None:
        self._hold(value)

    def _wait(self, value: Json) -> None:
        check_fields("wait", value, ("seconds",))
        self._pass(value["seconds"])

    def _pass(self, seconds: int) -> None:
        for _ in range(seconds):
            self.yard.second()


_DROPPED = {"node_selector": "nodeSelector", "tolerations": "tolerations", "affinity": "affinity"}
"""What a rollout can drop, and the field of the pods."""


def _node_of(value: Json) -> Json:
    """A node by itself, or as ``{node: ...}``."""
    if isinstance(value, Mapping):
        check_fields("node", value, ("node",))
        return value["node"]
    return value


def _template(document: Mapping[str, Json], name: str) -> dict[str, Any]:
    requests = {resource: str(document[resource]) for resource in ("cpu", "memory") if resource in document}
    container: dict[str, Any] = {"name": "c", "image": "example/c", "resources": {"requests": requests}}
    if "host_port" in document:
        container["ports"] = [{"containerPort": document["host_port"], "hostPort": document["host_port"]}]
    spec: dict[str, Any] = {"containers": [container]}
    selector = dict(document.get("node_selector", {}))
    if "type" in document:
        selector[INSTANCE_TYPE] = document["type"]
    if selector:
        spec["nodeSelector"] = selector
    if "tolerations" in document:
        spec["tolerations"] = document["tolerations"]
    if "priority_class" in document:
        spec["priorityClassName"] = document["priority_class"]
    return {
        "metadata": {"labels": {**document.get("labels", {}), "app": name}},
        "spec": {**spec, **document.get("spec", {})},
    }
