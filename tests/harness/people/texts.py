"""Reads what is shown of pods that wait: whether a text names the pod, and a rule that can keep this pod out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from agent.stockyard_agent.kubernetes import Object
from tests.harness.hours.pods import DRIVER, NAMESPACE

TAINT, LABEL, TOPOLOGY, VOLUME, PORT, RESOURCE = "taint", "label", "topology", "volume", "port", "resource"
LIMIT, CAPACITY, PAUSE, UNUSED, REFUSED = "limit", "capacity", "pause", "unused room", "refused"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANY = ""
"""The subject of a rule whose words name none."""
_WORDS = (
    (TAINT, r"The pod does not tolerate the taint ([^\s=:]+)"),
    (LABEL, r"No node of the pool has (\S+) (?:In|NotIn|Exists|DoesNotExist|Gt|Lt)\b"),
    (TOPOLOGY, r"Spread or affinity allows it in these values of (\S+): "),
    (TOPOLOGY, r"It has to be beside pods that are on no node with room()"),
    (VOLUME, r"None of the pool's zones has the pod's volumes()"),
    (PORT, r"A daemon set takes the host port (\d+)"),
    (RESOURCE, r"No node type of the pool has room for (\S+) \S+ beside its daemon sets"),
    (RESOURCE, r"No node type of the pool has room for all that the pod asks for together()"),
    (LIMIT, r"The pool's limit of (\S+) is reached"),
    (LIMIT, r"The pool's limits together leave no node type()"),
    (CAPACITY, r"No node type of the pool that would take it has a place left()"),
    (REFUSED, r"The pod fits only on node types that their cloud refused a moment ago \(([^)]+)\)"),
    (PAUSE, r"no other dynamic pool is there()"),
    (UNUSED, r"(\S[^:]*?) were made for them(?: and took none of them|; no other node is made)"),
    (UNUSED, r"(\S[^:]*?) ha[ds] room by what the cluster reports, which"),
)  # fmt: skip
"""Rules as ``scheduling.packing.reasons`` and ``operations.fleet.pools`` word them, each with its subject."""
_SCHEDULER = re.compile(
    r"The cluster's scheduler says: .*?(?:untolerated taint|were unschedulable|didn't match|didn't satisfy|free ports"
    r"|Insufficient \w+|Too many pods|max volume count|were barred|no nodes available)"
)
"""What kube-scheduler says of a rule. Room that is not used is explained by nobody else."""
_POD = re.compile(rf"(?<![\w-]){NAMESPACE}/([a-z0-9-]+)")
_TYPE = re.compile(r"sim\.([\w-]+)")
_MORE = re.compile(r"\(and \d+ more kinds of pods\)")


@dataclass(frozen=True)
class WaitingPod:
    """A pod that waits, as somebody sees it who knows the cluster: ``names`` are those of the pods like it, and
    ``rules`` what can keep it out, by the kind of the rule. ``nodes`` are all that there were, ``roomy`` those that the
    scheduler would take for it now."""

    names: Collection[str]
    rules: Mapping[str, Collection[str]] = field(default_factory=dict)
    nodes: Collection[str] = ()
    roomy: Collection[str] = ()


def rules_of(pod: Object) -> dict[str, set[str]]:
    """Rules of the pod itself, by their kind."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    terms = ((affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    beside = [
        term for kind in ("podAffinity", "podAntiAffinity") for term in (affinity.get(kind) or {}).get(_REQUIRED, ())
    ]
    spreads = [
        rule for rule in spec.get("topologySpreadConstraints") or () if rule["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    volumes = {"volume"} if spec.get("volumes") else set()
    return {
        LABEL: {
            *(spec.get("nodeSelector") or ()),
            *(part["key"] for term in terms for part in term["matchExpressions"]),
        },
        TOPOLOGY: {rule["topologyKey"] for rule in (*beside, *spreads)},
        VOLUME: volumes,
        PORT: {str(port["hostPort"]) for container in spec["containers"] for port in container.get("ports") or ()},
        RESOURCE: {"cpu", "memory", "pods"} | ({f"attachable-volumes-csi-{DRIVER}"} if volumes else set()),
    }


def unsaid(text: str, pod: WaitingPod) -> str:
    """Fact of the pod that the text does not say: its name, a rule that can keep it out, a node with room; empty where
    it says enough."""
    statement = " ".join(_statements(text, pod.names))
    if not statement:
        return "" if _MORE.search(text) else "no pod of it is named"
    if not any(_is_told(statement, kind, subject, pod) for kind, subject in _subjects(statement)):
        return "no rule that keeps it out is named"
    if pod.roomy and not _named(statement, pod.roomy):
        return "no node with room is named"
    return ""


def _statements(text: str, names: Collection[str]) -> Iterator[str]:
    """The parts of the text that begin with one of these pods and end before the next one."""
    matches = list(_POD.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    for match, end in zip(matches, ends[: len(matches)], strict=True):
        if match[1] in names:
            yield text[match.start() : end]


def _subjects(statement: str) -> Iterator[tuple[str, str]]:
    for kind, words in _WORDS:
        for match in re.finditer(words, statement):
            yield kind, match[1]


def _is_told(statement: str, kind: str, subject: str, pod: WaitingPod) -> bool:
    """Whether the rule can be why the pod waits."""
    if kind == UNUSED:
        return _named(subject, pod.nodes) and _SCHEDULER.search(statement) is not None
    if kind == REFUSED:
        return _TYPE.findall(subject) != [] and set(_TYPE.findall(subject)) <= set(pod.rules.get(REFUSED, ()))
    return bool(pod.rules.get(kind)) if subject == ANY else subject in pod.rules.get(kind, ())


def _named(text: str, names: Collection[str]) -> bool:
    return not names_in(text).isdisjoint(names)


def names_in(text: str) -> set[str]:
    """Everything in the text that may be the name of a node."""
    return {word.strip(".") for word in re.findall(r"[\w.-]+", text)}
