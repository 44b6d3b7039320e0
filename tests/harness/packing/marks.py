"""Rules by which the packer is unlike kube-scheduler, as Karpenter is: the marks of the table in docs/scheduling.md.

A plan leaves pods out by them that kube-scheduler binds, once the nodes of the plan are there. One of them lets a plan
place what kube-scheduler does not bind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from local.testing.packing_checker import HOSTNAME, ZONE
from stockyard.scheduling.packing.plan import pack
from tests.harness.packing.board import with_plan
from tests.harness.packing.reading import problem_of

Json = Any
GANG, DOMAINS, HOSTS, UNLABELLED, NEXT, DAEMONS = (
    "gangs", "possible domains", "hosts count from zero", "anti-affinity needs the label", "next pass", "daemon pods"
)  # fmt: skip
MARKS: Mapping[str, str] = {
    GANG: "Pods of one gang are placed all or none; kube-scheduler without a plugin for gangs takes each by itself.",
    DOMAINS: "A hard spread counts the values of its label that pools can make, not only those that nodes have.",
    HOSTS: "A hard spread over hosts counts from zero, as a new node could always be made.",
    UNLABELLED: "Required anti-affinity asks for its label; kube-scheduler lets the pod onto nodes without it.",
    NEXT: "A pod is looked at once in a pass: room on a node that was planned after it is found by the next pass.",
    DAEMONS: "Pods of DaemonSets that are still to come count for no rule between pods.",
}
PLACED = frozenset({DAEMONS})
"""Marks by which a plan places what kube-scheduler does not bind; by the others it leaves out what that one binds."""


def next_pass(problem: Mapping[str, Json], plan: Mapping[str, Json]) -> dict[str, str]:
    """The nodes of the pods that the next passes place on what is there when the plan has been carried out, in order;
    a pass may find a place beside pods of the one before."""
    later: dict[str, str] = {}
    while True:
        so_far = {**plan, "where": {**plan["where"], **later}}
        next_problem = {**with_plan(problem, so_far), "pools": [], "types": [], "daemonsets": []}
        next_plan = pack(problem_of(next_problem))
        where = {name: placement.node for placement in next_plan.placements for name in placement.pods}
        if not where:
            return later
        later |= {name: where[name] for name in next_plan.order}


def mark_of_left_out(
    problem: Mapping[str, Json], plan: Mapping[str, Json], pod: Mapping[str, Json], nodes: Collection[str]
) -> str:
    """Mark by which a pod was left out that kube-scheduler puts onto one of the nodes; empty: by none."""
    labels = {node["name"]: node["labels"] for node in (*problem["nodes"], *plan["nodes"])}
    hard = {spread["key"] for spread in pod.get("spreads", ()) if spread["hard"]}
    apart = {term["key"] for term in pod.get("anti_affinity", ()) if not term["weight"]}
    if "gang" in pod:
        return GANG
    if hard - {HOSTNAME}:
        return DOMAINS
    if HOSTNAME in hard:
        return HOSTS
    return UNLABELLED if any(key not in labels[name] for key in apart for name in nodes) else ""


def mark_of_placed(problem: Mapping[str, Json], node: Mapping[str, Json], pod: Mapping[str, Json], words: str) -> str:
    """Mark by which a pod was placed that kube-scheduler refuses with these words; empty: by none."""
    del pod
    against = "anti-affinity" in words
    return DAEMONS if against and problem["daemonsets"] and ZONE in node["labels"] else ""
