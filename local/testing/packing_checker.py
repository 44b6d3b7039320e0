"""Kubernetes' rules of placing, applied to a finished plan. Knows nothing of the packer: documents in, faults out.

A problem has ``types``, ``pools``, ``daemonsets``, ``nodes`` (with ``pods`` on them) and ``pods``; a plan has ``nodes``
that are to be made, ``where`` (the node of each placed pod) and ``order`` (the pods as they are to be placed).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = Any
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
POOL = "karpenter.sh/nodepool"
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "topology.ebs.csi.aws.com/zone": ZONE,
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""Labels of former days, and of drivers, that nodes have beside those of now."""


def faults(problem: Mapping[str, Json], plan: Mapping[str, Json]) -> list[str]:
    """All that is wrong with a plan, in the final state and in the order of placing."""
    pods = {pod["name"]: pod for pod in problem["pods"]}
    nodes = {node["name"]: node for node in (*problem["nodes"], *plan["nodes"])}
    problems = [f"{name} is placed and unknown" for name in plan["where"] if name not in pods]
    problems += [f"order and places differ for {name}" for name in set(plan["order"]) ^ set(plan["where"])]
    if len(plan["order"]) != len(set(plan["order"])):
        problems.append("a pod is placed twice")
    for gang in {pods[name]["gang"] for name in plan["where"] if "gang" in pods.get(name, {})}:
        members = {name for name, pod in pods.items() if pod.get("gang") == gang}
        if not members <= set(plan["where"]):
            problems.append(f"gang {gang} is placed in part")
    on: defaultdict[str, list[Json]] = defaultdict(list)
    for name, node in plan["where"].items():
        on[node].append(pods[name])
    for name, placed in on.items():
        problems += [f"{name}: {text}" for text in _on_node(problem, nodes[name], placed)]
    for node in plan["nodes"]:
        problems += [f"{node['name']}: {text}" for text in _new_node(problem, node)]
    problems += _limits(problem, plan)
    return problems + _topology(problem, plan, nodes, pods) + _final(problem, plan, nodes, pods)


# --- one node -------------------------------------------------------------------------------------------------------


def _on_node(problem: Mapping[str, Json], node: Mapping[str, Json], placed: Sequence[Json]) -> Iterable[str]:
    used: Counter[str] = Counter()
    for pod in (*placed, *node.get("pods", ())):
        used.update(requests_of(pod))
        used["pods"] += 1
    for daemon in daemons_on(problem, node):
        used.update(daemon["requests"])
        used["pods"] += 1
    for name, amount in used.items():
        if amount > node["allocatable"].get(name, 0):
            yield f"{amount} of {name}, and it has {node['allocatable'].get(name, 0)}"
    on_it = [*placed, *node.get("pods", ())]
    ports = [ports_of(pod) for pod in (*on_it, *daemons_on(problem, node))]
    if any(_clash(port, other) for index in range(len(placed)) for port in ports[index]
           for other_ports in ports[index + 1 :] for other in other_ports):  # fmt: skip
        yield "one port twice"
    attached = Counter(volume["driver"] for pod in on_it for volume in pod.get("volumes", ()))
    for driver, most in node.get("attach", {}).items():
        if placed and attached[driver] > most:
            yield f"{attached[driver]} volumes of {driver}, and it takes {most}"
    for pod in placed:
        if not tolerates(pod, taints_of(node), soft=False):
            yield f"{pod['name']} does not tolerate its taints"
        if not allowed(pod, node["labels"]):
            yield f"{pod['name']} asks for other labels"
        if any(node["labels"].get(ZONE) not in volume["zones"] for volume in pod.get("volumes", ())):
            yield f"{pod['name']} has a volume elsewhere"
        if pod.get("devices") or pod.get("gated"):
            yield f"{pod['name']} waits for something that no node has"


def daemons_on(problem: Mapping[str, Json], node: Mapping[str, Json]) -> list[Json]:
    """The DaemonSets that will have a pod on a planned node: the pods of others are there."""
    return [
        daemon
        for daemon in problem["daemonsets"]
        if "pool" in node and tolerates(daemon, node["taints"], soft=False) and allowed(daemon, node["labels"])
    ]


def requests_of(pod: Mapping[str, Json]) -> Mapping[str, int]:
    """Resources that a pod takes. What it says as a whole counts instead of what its containers say; a limit of the
    whole stands for a request that neither has."""
    whole = pod.get("pod_resources", {})
    return {**whole.get("limits", {}), **pod.get("requests", {}), **whole.get("requests", {})}


def ports_of(pod: Mapping[str, Json]) -> list[tuple[int, str, str]]:
    """Number, protocol and address of each host port of a pod, with the ports of its sidecars."""
    return [
        (port, "TCP", "") if isinstance(port, int) else (port["port"], port["protocol"], port["address"])
        for port in (*pod.get("ports", ()), *pod.get("sidecar_ports", ()))
    ]


def _clash(port: tuple[int, str, str], other: tuple[int, str, str]) -> bool:
    return port[:2] == other[:2] and (not port[2] or not other[2] or port[2] == other[2])


def taints_of(node: Mapping[str, Json]) -> list[Json]:
    """The taints of a node, with that of one that somebody has cordoned."""
    cordon = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
    return [*node["taints"], *([cordon] if node.get("cordoned") else [])]


def _new_node(problem: Mapping[str, Json], node: Mapping[str, Json]) -> Iterable[str]:
    """Whether a pool can make the node."""
    pool = next(pool for pool in problem["pools"] if pool["name"] == node["pool"])
    kind = next(kind for kind in problem["types"] if kind["name"] == node["type"])
    labels = node["labels"]
    if not any(
        offering["zone"] == labels[ZONE]
        and offering["capacity_type"] == labels[CAPACITY_TYPE]
        and abs(offering["price"] - node["price"]) < 1e-9
        for offering in kind["offerings"]
    ):
        yield "the type has no such offering"
    if node["allocatable"] != kind["allocatable"]:
        yield "it has other room than its type"
    for key, values in kind["labels"].items():
        if values and labels.get(key) not in values:
            yield f"{key}={labels.get(key)}, and the type has {values}"
        if not values and key in labels:
            yield f"it has {key}, and the type has not"
    for key, value in {**pool["labels"], POOL: pool["name"]}.items():
        if labels.get(key) != value:
            yield f"{key}={labels.get(key)}, and the pool says {value}"
    for entry in pool["requirements"]:
        if not satisfied(entry, labels):
            yield f"the pool requires {entry}"
        if len(set(node["values"].get(entry["key"], ()))) < entry.get("minValues", 0):
            yield f"it has too few values of {entry['key']} to choose from"
    if node["taints"] != pool["taints"]:
        yield "it has other taints than its pool"


def _limits(problem: Mapping[str, Json], plan: Mapping[str, Json]) -> Iterable[str]:
    faulty = []
    kinds = {kind["name"]: kind for kind in problem["types"]}
    for pool in problem["pools"]:
        new_nodes = [node for node in plan["nodes"] if node["pool"] == pool["name"]]
        for name, limit in pool.get("limits", {}).items():
            if name == "nodes":
                total = float(len(new_nodes))
            elif name == "money":
                total = sum(node["price"] for node in new_nodes)
            else:
                total = sum(kinds[node["type"]]["capacity"].get(name, 0) for node in new_nodes)
            if new_nodes and total > limit + 1e-9:
                faulty.append(f"pool {pool['name']} has {total} of {name}, at most {limit}")
    return faulty


# --- topology -------------------------------------------------------------------------------------------------------


def _topology(
    problem: Mapping[str, Json], plan: Mapping[str, Json], nodes: Mapping[str, Json], pods: Mapping[str, Json]
) -> list[str]:
    """The pods placed one after the other: each must be allowed where it goes when it goes there."""
    there = [(pod, node) for node in problem["nodes"] for pod in node.get("pods", ())]
    problems = []
    for name in plan["order"]:
        pod, node = pods[name], nodes[plan["where"][name]]
        problems += [f"{name} in order: {text}" for text in _refusals(problem, plan, pod, node, there)]
        there.append((pod, node))
    return problems


def _final(
    problem: Mapping[str, Json], plan: Mapping[str, Json], nodes: Mapping[str, Json], pods: Mapping[str, Json]
) -> list[str]:
    """All pods at their places: anti-affinity and what spreads over hosts hold whoever came first."""
    spaces = problem.get("namespaces", {})
    there = [(pod, node) for node in problem["nodes"] for pod in node.get("pods", ())]
    there += [(pods[name], nodes[where]) for name, where in plan["where"].items()]
    problems = []
    for index, (pod, node) in enumerate(there):
        if pod["name"] not in plan["where"]:
            continue  # what was there before is nobody's fault
        rest_of_pods = there[:index] + there[index + 1 :]
        problems += [f"{pod['name']} at the end: {text}" for text in _repelled(pod, node, rest_of_pods, spaces)]
        for spread in pod.get("spreads", ()):
            if spread["hard"] and spread["key"] == HOSTNAME and pod["name"] in plan["where"]:
                count = sum(1 for entry, at in there if at is node and selects(spread, entry, pod))
                if count > spread["max_skew"]:
                    problems.append(f"{pod['name']} at the end: {count} on one host")
    return problems


def _refusals(
    problem: Mapping[str, Json],
    plan: Mapping[str, Json],
    pod: Mapping[str, Json],
    node: Mapping[str, Json],
    there: Sequence[tuple[Json, Json]],
) -> Iterable[str]:
    spaces = problem.get("namespaces", {})
    yield from _repelled(pod, node, there, spaces)
    required = [term for term in pod.get("affinity", ()) if not term.get("weight")]

    def is_wanted(other: Json) -> bool:
        # A pod counts when it matches all terms.
        return all(selects(term, other, pod, spaces) for term in required)

    wanted_nodes = [at for entry, at in there if required and is_wanted(entry)]
    # One on a node that has none of the labels counts for nobody.
    first = not any(term["key"] in at["labels"] for at in wanted_nodes for term in required) and is_wanted(pod)
    for term in required:
        domain = node["labels"].get(term["key"])
        if domain is None or not (first or any(at["labels"].get(term["key"]) == domain for at in wanted_nodes)):
            yield f"nobody to be with for {term['key']}"
    for spread in pod.get("spreads", ()):
        if spread["hard"]:
            yield from _skewed(problem, plan, pod, node, there, spread)


def _repelled(
    pod: Mapping[str, Json],
    node: Mapping[str, Json],
    there: Sequence[tuple[Json, Json]],
    spaces: Mapping[str, Mapping[str, str]],
) -> Iterable[str]:
    for entry, at in there:
        for term in pod.get("anti_affinity", ()):
            if not term.get("weight") and selects(term, entry, pod, spaces) and _together(term["key"], node, at):
                yield f"with {entry['name']} against its own rule"
        for term in entry.get("anti_affinity", ()):
            if not term.get("weight") and selects(term, pod, entry, spaces) and _together(term["key"], node, at):
                yield f"with {entry['name']} against its rule"


def _skewed(
    problem: Mapping[str, Json],
    plan: Mapping[str, Json],
    pod: Mapping[str, Json],
    node: Mapping[str, Json],
    there: Sequence[tuple[Json, Json]],
    spread: Mapping[str, Json],
) -> Iterable[str]:
    key, domain = spread["key"], node["labels"].get(spread["key"])
    if domain is None:
        yield f"the node has no {key}"
        return
    counts: Counter[str] = Counter()
    for entry, at in there:
        if selects(spread, entry, pod) and _counts(spread, pod, at):
            counts[at["labels"][key]] += 1
    smallest = 0
    if key != HOSTNAME:
        # A zone that has no node of this plan does not exist for the scheduler.
        domains = {at["labels"][key] for at in (*problem["nodes"], *plan["nodes"]) if _counts(spread, pod, at)}
        enough = len(domains) >= (spread.get("min_domains") or 0)
        smallest = min((counts[entry] for entry in domains), default=0) if enough else 0
    own = int(selects(spread, pod, pod))
    if counts[domain] + own - smallest > spread["max_skew"]:
        yield f"{counts[domain]} in {domain}, {smallest} elsewhere"


def _counts(spread: Mapping[str, Json], pod: Mapping[str, Json], node: Mapping[str, Json]) -> bool:
    """Whether a node, and what is on it, counts for a rule of spread of the pod."""
    keys = [each["key"] for each in pod.get("spreads", ()) if each["hard"]]
    if not all(key in node["labels"] for key in keys):
        return False
    if spread.get("affinity_policy", "Honor") == "Honor" and not allowed(pod, node["labels"]):
        return False
    return spread.get("taints_policy", "Ignore") == "Ignore" or tolerates(pod, taints_of(node), soft=False)


def _together(key: str, node: Mapping[str, Json], at: Mapping[str, Json]) -> bool:
    return key in node["labels"] and node["labels"][key] == at["labels"].get(key)


# --- selectors ------------------------------------------------------------------------------------------------------


def selects(
    term: Mapping[str, Json],
    pod: Mapping[str, Json],
    holder: Mapping[str, Json],
    spaces: Mapping[str, Mapping[str, str]] | None = None,
) -> bool:
    """Whether a term of ``holder`` selects the pod. ``spaces`` are labels of namespaces; each has its name as one."""
    namespace_labels = term.get("namespace_selector")
    named = term.get("namespaces") or ([holder["namespace"]] if namespace_labels is None else [])
    labels = {**(spaces or {}).get(pod["namespace"], {}), "kubernetes.io/metadata.name": pod["namespace"]}
    inside = pod["namespace"] in named or (namespace_labels is not None and namespace_labels.items() <= labels.items())
    if not inside or term["selector"] is None:
        return False
    own, pod_labels = holder["labels"], pod["labels"]
    return (
        term["selector"].items() <= pod_labels.items()
        and all(satisfied(entry, pod_labels) for entry in term.get("expressions", ()))
        and all(pod_labels.get(key) == own[key] for key in term.get("match_label_keys", ()) if key in own)
        and all(pod_labels.get(key) != own[key] for key in term.get("mismatch_label_keys", ()) if key in own)
    )


def tolerates(pod: Mapping[str, Json], taints: Sequence[Mapping[str, str]], *, soft: bool) -> bool:
    """Whether the pod tolerates the taints; ``soft`` counts those that are only preferred."""
    return all(
        any(
            entry.get("effect", "") in ("", taint["effect"])
            and entry.get("key", "") in ("", taint["key"])
            and (entry.get("operator") == "Exists" or entry.get("value", "") == taint.get("value", ""))
            for entry in pod.get("tolerations", ())
        )
        for taint in taints
        if soft or taint["effect"] != "PreferNoSchedule"
    )


def allowed(pod: Mapping[str, Json], labels: Mapping[str, str]) -> bool:
    """Whether the node's labels satisfy what the pod requires."""
    labels = {**labels, **{alias: labels[key] for alias, key in ALIASES.items() if key in labels}}
    if any(labels.get(key) != value for key, value in pod.get("node_selector", {}).items()):
        return False
    terms = pod.get("required_terms", ())
    return not terms or any(all(satisfied(entry, labels) for entry in term) for term in terms)


def satisfied(entry: Mapping[str, Json], labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy one requirement."""
    value, operator, values = labels.get(entry["key"]), entry["operator"], entry.get("values", [])
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
