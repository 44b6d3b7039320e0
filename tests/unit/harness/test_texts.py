"""The reader of texts about pods that wait: a text that names no pod, no rule of this pod or no node is not enough."""

from __future__ import annotations

import pytest

from tests.harness.people.texts import CAPACITY, LABEL, LIMIT, PORT, REFUSED, RESOURCE, TOPOLOGY, WaitingPod, unsaid

ZONE = "topology.kubernetes.io/zone"
POD = WaitingPod(
    {"web-1", "web-2"},
    {
        RESOURCE: {"cpu", "memory", "pods"},
        LABEL: {ZONE},
        TOPOLOGY: {ZONE},
        PORT: {"8080"},
        LIMIT: ["nodes"],
        REFUSED: ["m-8"],
    },
    {"pool-abc", "pool-abc.simulated"},
)
NO_POD, NO_RULE = "no pod of it is named", "no rule that keeps it out is named"
SAYS = "The cluster's scheduler says: node(s) had untolerated taint {maintenance: }."
ONLY = "default/web-1: pool: The pod fits only on node types that their cloud refused a moment ago"
ENOUGH = (
    f"{ONLY} (sim.m-8); they are tried again.",
    "default/web-1: pool: The pool's limit of nodes is reached.",
    "default/api-1: pool: The pod does not tolerate the taint x:NoSchedule.; default/web-2 and 1 like it: pool: No "
    f"node of the pool has {ZONE} In zone-x.",
    f"default/web-1: pool: Spread or affinity allows it in these values of {ZONE}: none.",
    "default/web-1: pool: No node type of the pool has room for cpu 90 beside its daemon sets.",
    "default/web-1: a: The pod does not tolerate the taint x:NoSchedule; b: A daemon set takes the host port 8080 on "
    "each node of the pool.",
    "default/web-1 and 1 like it: pool-abc.simulated has room by what the cluster reports, which is not used yet. "
    f"{SAYS}",
    f"default/web-1: pool-abc were made for them and took none of them, so no other node is made. {SAYS}",
    "default/api-1: pool: The pool's limit of nodes is reached. (and 2 more kinds of pods)",
)
TOO_LITTLE = (
    (f"{ONLY} (sim.m-8, sim.c-8); they are tried again.", NO_RULE),
    (f"{ONLY} (none); they are tried again.", NO_RULE),
    ("", NO_POD),
    ("Every pod that waits has a node or one on its way.", NO_POD),
    ("default/web-10: pool: The pool's limit of nodes is reached.", NO_POD),
    ("default/api-web-1: pool: The pool's limit of nodes is reached.", NO_POD),
    ("default/web-1: some pods have no room, memory, zone, taint, affinity, spread or port.", NO_RULE),
    ("default/web-1: pool: there was a problem; default/api-1: pool: The pool's limit of nodes is reached.", NO_RULE),
    ("default/web-1: pool: The pool's limit of cpu is reached.", NO_RULE),
    ("default/web-1: pool: No node of the pool has example.test/rack In r1.", NO_RULE),
    ("default/web-1: pool: The pod does not tolerate the taint x:NoSchedule.", NO_RULE),
    ("default/web-1: pool: A daemon set takes the host port 9100 on each node of the pool.", NO_RULE),
    ("default/web-1: pool: None of the pool's zones has the pod's volumes.", NO_RULE),
    ("default/web-1: pool: No node type of the pool that would take it has a place left.", NO_RULE),
    ("default/web-1: pool-abc has room by what the cluster reports, which is not used yet.", NO_RULE),
    (f"default/web-1: pool-xyz has room by what the cluster reports, which is not used yet. {SAYS}", NO_RULE),
    (f"default/web-1: {SAYS}", NO_RULE),
)


@pytest.mark.parametrize("text", ENOUGH)
def test_names_of_pod_and_rule_are_enough(text: str) -> None:
    assert unsaid(text, POD) == ""


@pytest.mark.parametrize(("text", "problem"), TOO_LITTLE)
def test_text_that_says_too_little_is_noticed(text: str, problem: str) -> None:
    assert unsaid(text, POD) == problem


def test_node_with_room_has_to_be_named() -> None:
    beside = WaitingPod(POD.names, {**POD.rules, CAPACITY: ["capacity"]}, POD.nodes, {"pool-abc.simulated"})
    text = "default/web-1: pool: No node type of the pool that would take it has a place left."
    assert unsaid(text, beside) == "no node with room is named"
    named = (
        f"{text} default/web-2: pool-abc.simulated has room by what the cluster reports, which is not used yet. {SAYS}"
    )
    assert unsaid(named, beside) == ""
