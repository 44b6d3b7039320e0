"""The story of pools that a cluster's own pods tell, on any cluster of a served local cloud.

Pods are made in the cluster's Kubernetes API. That they wait, Stockyard hears from the cluster's agent alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.aws.accounts import ACME_ACCOUNT
from local.kubernetes.cluster import Kubelet
from local.kubernetes.real.client import MERGE, Client, Refused
from local.kubernetes.real.control_plane import KWOK
from local.testing.example import example_body

if TYPE_CHECKING:
    from local.testing.serving import Served

Object = dict[str, Any]
CPU, GIB = 4, 16
_KIND = {"name": "n", "resources": {"cpu": str(CPU), "memory": f"{GIB}Gi"}, "usdPerHour": 0.5}
LAB = {"name": "pool-lab", "kind": "simulated", "spec": {"joinSeconds": "never", "nodeTypes": [_KIND]}}
"""The provider of the static pool. By themselves its machines never join: the story plays what they boot."""
GROUP, STATIC = "workers", "base"
POOL = "stockyard.dev/pool"
MONEY = f"{GROUP}: The pool's limit of money is reached."
MACHINES = "T#acme#SimulatedMachine"
"""Where the table has the records of simulated machines."""
PODS = "/api/v1/namespaces/default/pods"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_NODES = "/api/v1/nodes"
_PATHS = {"Pod": PODS, "PodDisruptionBudget": _BUDGETS}
_MIRROR = "/apis/karpenter.sh/v1"


def story_body(**changes: Any) -> Object:
    """The README's cluster, whose group of workers may grow as far as the story needs it."""
    body = {**example_body(), **changes}
    for group in body["settings"]["autoscaler_node_groups"]:
        if group["role"] == "worker":
            group["max_size"] = 40
    return body


def pod(name: str, selector: Mapping[str, str], cpu: str) -> Object:
    """A pod as a person writes it, for nodes with these labels."""
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
    spec = {"nodeSelector": dict(selector), "containers": [container], "terminationGracePeriodSeconds": 1}
    meta = {"name": name, "namespace": "default", "labels": {"app": name.rpartition("-")[0]}}
    # Without a mounted token a pod does not wait for the certificates that Kubernetes publishes in its namespace.
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**spec, "automountServiceAccountToken": False},
    }


def administrator(served: Served, cluster: Mapping[str, Any], folder: Path) -> Client:
    """A caller with kubeadm's kubeconfig from the cluster's control plane; a copy of it goes to ``folder``."""
    marks = [{"Name": "tag:vantage-cluster", "Values": [cluster["client_id"]]}]
    reservations = served.aws("ec2", ACME_ACCOUNT).describe_instances(Filters=marks)["Reservations"]
    ids = [instance["InstanceId"] for group in reservations for instance in group["Instances"]]
    paths = (served.home / "machines" / machine / "kubernetes" / "super-admin.conf" for machine in ids)
    (source,) = (path for path in paths if path.exists())
    copy = folder / source.name
    copy.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    return Client.of_kubeconfig(copy)


@dataclass
class Story:
    """A cluster with a group of workers on EC2 and a static pool on the simulated provider, and its pods.

    ``create`` makes pods as the cluster's user; without it the administrator makes them.
    """

    served: Served
    cluster: Mapping[str, Any]
    kube: Client
    create: Callable[[Sequence[Object]], None] | None = None
    played: dict[str, str] = field(default_factory=dict)
    """Id of a claim of the static pool -> name of its Node. Machines of the simulated provider are records, so the
    story plays what their boot does: the Node registers with the claim's label, and Stockyard hears of it by the
    cluster's agent, as of any other."""
    lost: Object = field(default_factory=dict)
    """The claim whose machine was ended."""
    machine_ids: set[str] = field(default_factory=set)
    """Of all machines that the static pool has had."""
    for_pods: str = ""
    consolidated: bool = False
    """Whether nodes have left for their price before the pool was deleted."""
    """The id of a claim that was made for pods."""

    # --- looking -----------------------------------------------------------------------------------------------------

    def good(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The body of an answer that says yes."""
        answer = self.served.call(method, f"/v1/{path}", body, **options)
        assert answer.status in (200, 201, 202), answer.text
        return answer.body

    def pool(self, name: str) -> Object:
        """A pool as the API shows it."""
        document: Object = self.good("GET", f"{self._path}/pools/{name}")
        return document

    def claims(self, pool: str) -> list[Object]:
        """The claims of a pool."""
        listed = self.good("GET", f"node-claims?cluster={self.cluster['id']}&page_size=200")["items"]
        return [claim for claim in listed if claim["name"].startswith(f"{pool}-")]

    def condition(self, kind: str) -> Object:
        """A condition of the cluster; empty while it has none of that kind."""
        conditions = self.good("GET", self._path)["conditions"]
        return next((dict(each) for each in conditions if each["type"] == kind), {})

    def reasons(self, subject: str) -> list[str]:
        """The reasons of all events about a subject, in order."""
        return [event["reason"] for event in self.events(subject)]

    def phases(self, app: str) -> list[tuple[str, str]]:
        """Phase and node of each pod of an application."""
        items = self.kube.call("GET", PODS)["items"]
        selected = [item for item in items if item["metadata"]["labels"].get("app") == app]
        return [(item["status"].get("phase", ""), item["spec"].get("nodeName", "")) for item in selected]

    def nodes(self) -> dict[str, Object]:
        """The Nodes of the cluster, by name, without its control plane's."""
        items = self.kube.call("GET", _NODES)["items"]
        return {item["metadata"]["name"]: item for item in items if "stockyard.dev/claim" in item["metadata"]["labels"]}

    @property
    def _path(self) -> str:
        return f"clusters/{self.cluster['id']}"

    # --- the story ---------------------------------------------------------------------------------------------------

    def floors(self) -> None:
        """Every pool gets the nodes that it has to have, whatever pods there are."""

        def ready() -> bool:
            self.play()
            return bool(self.condition("PoolsReady").get("status") == "True")

        self.served.wait("the pools", ready, 120)
        counts = {name: self.pool(name)["nodes"] for name in (GROUP, STATIC)}
        assert {name: (count["claims"], count["available"]) for name, count in counts.items()} == {
            GROUP: (1, 1), STATIC: (2, 2),
        }  # fmt: skip
        (worker,) = self.claims(GROUP)
        assert (worker["placement"]["type"], worker["node_labels"]["workload"]) == (
            "ec2-1-us-east-1.t3.large",
            "general",
        )
        assert self.nodes().keys() == {worker["node_name"], *self.played.values()}
        self.served.wait("the mirror", self._is_mirrored, 60)

    def pods_bring_nodes(self, count: int) -> dict[str, Any]:
        """So many pods wait; the pool makes the nodes that they need, and all of them run there. Returns figures."""
        floor, began = {claim["id"] for claim in self.claims(GROUP)}, time.monotonic()
        pods = [pod(f"web-{number}", {"workload": "general"}, "250m") for number in range(count)]
        self.create(pods) if self.create else self._post(*pods)
        self.served.wait("pods that run", lambda: self.all_run("web", count), 300)
        seconds = time.monotonic() - began
        placed = {node for _, node in self.phases("web")}
        assert len(placed) > 1
        assert placed <= self.nodes().keys() - set(self.played.values())
        self.served.wait("claims", lambda: {claim["phase"] for claim in self.claims(GROUP)} == {"Available"}, 60)
        nodes = self.pool(GROUP)["nodes"]
        # No cheaper set of nodes holds the pods, so none of them can be empty.
        assert nodes["claims"] == nodes["available"] == len(placed), (nodes, placed)
        assert self.condition("PodsHaveRoom")["status"] == "True"
        self.for_pods = next(claim["id"] for claim in self.claims(GROUP) if claim["id"] not in floor)
        return {
            "pods": count, "seconds": round(seconds, 1), "nodes": nodes["available"], "usd_hour": nodes["usd_hour"],
        }  # fmt: skip

    def money_stops_the_next(self) -> None:
        """The nodes' present price is all that the pool may cost: pods that have no room bring none."""
        before = self.pool(GROUP)["nodes"]
        self.change(GROUP, {"limits": {"usd_hour": before["usd_hour"]}})
        names = [f"dear-{number}" for number in range(4)]
        self._post(*(pod(name, {"workload": "general"}, "1800m") for name in names))
        message = self.served.wait("the refusal", self.refusal, 60)
        assert message.startswith("default/dear-"), message
        assert MONEY in message
        assert self.pool(GROUP)["nodes"] == before
        assert ("Pending", "") in self.phases("dear")
        for name in names:
            self.kube.call("DELETE", f"{PODS}/{name}")

    def lose_a_node(self) -> None:
        """The owner of a simulated machine ends it: its record is all there is of it. A sweep finds that out."""
        self.lost = self.claims(STATIC)[0]
        key = {"pk": {"S": MACHINES}, "sk": {"S": self.lost["machine_id"]}}
        table = self.served.aws("dynamodb")
        removed = table.delete_item(TableName="stockyard-dev", Key=key, ReturnValues="ALL_OLD")
        assert removed.get("Attributes"), "there was such a machine"
        silent = {"metadata": {"labels": {KWOK: None}}}
        self.kube.call("PATCH", f"{_NODES}/{self.lost['node_name']}", silent, MERGE)
        self.served.aws("lambda").invoke(FunctionName="stockyard-dev-reaper", Payload=b"{}", InvocationType="Event")

    def lost_node_is_replaced(self) -> None:
        """The static pool has as many nodes as before, and nothing is left of the lost one."""
        lost = self.lost

        def replaced() -> bool:
            self.play()
            current = {claim["id"]: claim["phase"] for claim in self.claims(STATIC)}
            return lost["id"] not in current and list(current.values()) == ["Available"] * 2

        self.served.wait("the new node", replaced, 60)
        assert self.nodes().keys() > set(self.played.values())
        assert lost["node_name"] not in self.nodes()
        reasons = self.reasons(lost["id"])
        assert reasons[reasons.index("Available") + 1] == "MachineGone", reasons
        assert reasons[-1] == "Deleted"

    def deleted_pool_is_drained(self) -> None:
        """Nodes of a deleted pool go when their pods have gone, and those as disruption budgets let them.
        So does what the cluster shows of its pools and claims."""
        self.served.wait("room", lambda: self.condition("PodsHaveRoom")["status"] == "True", 60)
        meta, selector = {"name": "calm", "namespace": "default"}, {"matchLabels": {"app": "calm"}}
        budget = {"minAvailable": 2, "selector": selector}
        self._post({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget})
        self._post(*(pod(f"calm-{number}", {POOL: STATIC}, "2500m") for number in range(2)))
        self.served.wait("pods on the static pool", lambda: self.all_run("calm", 2), 60)
        assert {node for _, node in self.phases("calm")} == set(self.played.values())
        plan = self.good("DELETE", f"{self._path}/pools/{STATIC}?dry_run=true")["plan"]
        assert [item["kind"] for item in plan["deletes"]] == ["node-claim", "node-claim", "pool"]
        for name in (STATIC, GROUP):
            self.good("DELETE", f"{self._path}/pools/{name}?confirm={name}")
        log = self.served.home / "logs" / "agents.log"
        needs = "The disruption budget calm needs 2 healthy pods"
        self.served.wait("the budget", lambda: needs in log.read_text(encoding="utf-8"), 60)
        assert self.all_run("calm", 2), "no pod of the budget has gone"
        assert [claim["deleting"] for claim in self.claims(STATIC)] == [True] * 2
        self.kube.call("DELETE", f"{_BUDGETS}/calm")
        for name in (STATIC, GROUP):
            self.served.wait(f"the end of {name}", partial(self._is_gone, name), 240)
        self.served.wait("the end of the mirror", lambda: not any(self._mirror()), 30)
        self.served.wait("the last pods", lambda: not self.kube.call("GET", PODS)["items"], 30)
        assert (self.nodes(), self.machines()) == ({}, [])
        assert self._all_claims() == []

    def events_tell_it(self) -> None:
        """The events of the pods' pool and of a claim for them, in order."""
        pool = f"{self.cluster['id']}/{GROUP}"
        events = sorted((*self.events(pool), *self.events(self.for_pods)), key=lambda event: str(event["id"]))
        tale = [("pool" if event["subject"] == pool else "claim", event["reason"]) for event in events]
        life = ("Accepted", "Scheduled", "Provisioned", "Joined", "Available")
        milestones = [
            ("pool", "Created"), ("pool", "Satisfied"), *(("claim", reason) for reason in life),
        ]  # fmt: skip
        end_of_claim = [("claim", "DeletionRequested"), ("claim", "Deleted")]
        if self.consolidated:
            milestones += [("pool", "Changed"), ("pool", "Changed"), *end_of_claim, ("pool", "DeletionRequested")]
        else:
            milestones += [("pool", "Changed"), ("pool", "DeletionRequested"), *end_of_claim]
        milestones.append(("pool", "Deleted"))
        assert [entry for entry in tale if entry in milestones] == milestones, tale

    # --- means -------------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Register the Nodes of the static pool's machines that have come since the last time."""
        living = [claim for claim in self.claims(STATIC) if claim["phase"] != "Failed" and not claim["deleting"]]
        current = {claim["id"]: claim for claim in living if claim["machine_id"]}
        for claim_id in current.keys() - self.played.keys():
            claim = current[claim_id]
            labels = {"stockyard.dev/claim": claim_id, KWOK: "on"}
            kubelet = Kubelet(f"simulated://{claim['machine_id']}", CPU, GIB * 1024)
            self.kube.call("POST", _NODES, kubelet.node(claim["name"], labels, [], "110"))
        self.machine_ids |= {claim["machine_id"] for claim in current.values()}
        self.played = {claim_id: claim["name"] for claim_id, claim in current.items()}

    def change(self, pool: str, fields: Object) -> None:
        """Change a pool, again where a pass over it came between."""
        answer = self.served.change("PATCH", f"/v1/{self._path}/pools/{pool}", fields)
        assert answer.status == 200, answer.text

    def change_cluster(self, patch: Object) -> None:
        """Change the cluster, again where something else came between, and wait until its operation has ended."""
        answer = self.served.change("PATCH", f"/v1/{self._path}", patch)
        assert answer.status == 202, answer.text
        assert self.served.operation(answer.body["operation_id"])["status"] == "succeeded"

    def machines(self) -> list[str]:
        """The ids of the cluster's machines that are there, of both providers, but for its control plane."""
        marks = [{"Name": "tag:vantage-cluster", "Values": [self.cluster["client_id"]]}]
        reservations = self.served.aws("ec2", ACME_ACCOUNT).describe_instances(Filters=marks)["Reservations"]
        instances = [instance for group in reservations for instance in group["Instances"]]
        alive = [
            instance["InstanceId"]
            for instance in instances
            if instance["State"]["Name"] not in ("terminated", "shutting-down")
            and not any(tag["Value"].endswith("-control-plane") for tag in instance["Tags"] if tag["Key"] == "Name")
        ]
        query = {
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": MACHINES}},
        }
        records = self.served.aws("dynamodb").query(TableName="stockyard-dev", **query)["Items"]
        return [*alive, *({record["sk"]["S"] for record in records} & self.machine_ids)]

    def events(self, subject: str) -> list[Object]:
        """All events about a subject."""
        listed: list[Object] = self.good("GET", f"events?subject={subject}&page_size=200")["items"]
        return listed

    def _post(self, *documents: Object) -> None:
        """Make objects as the administrator, which takes no program a call."""
        for document in documents:
            self.kube.call("POST", _PATHS[document["kind"]], document)

    def _is_mirrored(self) -> bool:
        """Whether the cluster shows its pools and claims as they are."""
        try:
            pools, claims = self._mirror()
        except Refused:
            return False
        # An object comes first and its status after it, in a request of its own.
        statuses = {item["metadata"]["name"]: item.get("status", {}) for item in claims}
        ready = {
            name: (status["nodeName"], status.get("capacity", {}).get("cpu", ""))
            for name, status in statuses.items()
            if any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))
        }
        nodes = {node: item["status"]["capacity"]["cpu"] for node, item in self.nodes().items()}
        expected = {claim["name"]: (claim["node_name"], nodes[claim["node_name"]]) for claim in self._all_claims()}
        return {item["metadata"]["name"] for item in pools} == {GROUP, STATIC} and ready == expected

    def _all_claims(self) -> list[Object]:
        return [*self.claims(GROUP), *self.claims(STATIC)]

    def _mirror(self) -> tuple[list[Object], list[Object]]:
        """The NodePools and the NodeClaims of the cluster. Raises ``Refused`` while it serves none."""
        pools, claims = (self.kube.call("GET", f"{_MIRROR}/{kind}")["items"] for kind in ("nodepools", "nodeclaims"))
        return pools, claims

    def _is_gone(self, pool: str) -> bool:
        return self.served.call("GET", f"/v1/{self._path}/pools/{pool}").status == 404

    def all_run(self, app: str, count: int) -> bool:
        """Whether there are so many pods of an application, and all of them run."""
        phases = self.phases(app)
        return len(phases) == count and {phase for phase, _ in phases} == {"Running"}

    def refusal(self) -> str:
        """Reason why pods wait; empty while none does."""
        current = self.condition("PodsHaveRoom")
        return str(current["message"]) if current.get("status") == "False" else ""
