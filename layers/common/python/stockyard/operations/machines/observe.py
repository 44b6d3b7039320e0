"""Posts of a cluster's agent, and the work for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from typing import Any

from stockyard.domain.clusters.join_tokens import join_token
from stockyard.domain.nodes.node_types import SPOT
from stockyard.domain.pools.workload_records import WorkloadReport
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import CAPACITY_TYPE
from stockyard.lifecycle.change_phases import REPLACING_PHASES
from stockyard.lifecycle.nodes.draining import drain_deadline
from stockyard.lifecycle.nodes.node_commands import (
    DRAIN,
    HOLDERS,
    KINDS,
    NODE,
    Command,
    command_id,
    commands_of,
    done_fact,
    seen_of,
)
from stockyard.operations.listing import every
from stockyard.operations.machines import overlay, overlay_paths
from stockyard.operations.machines.first_node import note_first_node
from stockyard.operations.machines.mirror import MIRROR, version_of
from stockyard.operations.machines.overlay import OverlayList
from stockyard.operations.machines.unclaimed import UNCLAIMED, has_any, note_unclaimed
from stockyard.operations.node_providers.catalog import drain_seconds
from stockyard.operations.services import Services
from stockyard.ports import Put

OBSERVED = "observed"
"""The cluster's fact of the agent's last post."""
ATTENDED = f"{OBSERVED}-attended"
"""The cluster's fact of until when somebody needs to know it well; see ``attention.attend``."""

KEPT_SECRETS = f"{OBSERVED}-secret"
"""What the facts of Secrets that a cluster's agent keeps are called; see ``clusters.kept_secrets``."""

SILENT_SECONDS = 300
"""How long an agent that is expected and says nothing is waited for."""

AHEAD_SECONDS = 60
"""How far the clock of an agent may be ahead of ours."""

EXPECTANT_SECONDS = 120
"""For how long after more pods wait claims for them are expected, whose tokens the agent has to make."""
ATTENTIVE_SECONDS = 3600
"""For how long after the last claim was worked on the agent comes more often than to an idle cluster."""

REWRITE_SECONDS = 900
"""How old the record of the last post of an idle cluster's agent may be."""
MOVING = frozenset({"sequence", "observed_at", "written_at", "pods"})
"""What differs in each post."""

INTERRUPTIBLE_SECONDS = 20
"""How soon the agent of a cluster with spot nodes comes again whose machines do not tell the cluster that they end: the
warning is two minutes, and it has to hear of it."""
INTERRUPTION = "stockyard.dev/interruption"
"""The label of nodes whose machines do: see ``machines/on_machine/stockyard_near.py``."""
DEAF_AGENTS = ("1",)
"""Versions of agents that do not come by that label."""

PATIENT_SECONDS = 3600
"""How long a drain has to wait until its cluster's agent comes less often for it."""
MOST_HOLDERS, MOST_TEXT = 5, 300
LONGEST = 3600
"""Seconds; an agent never waits longer."""

InHand = Callable[[str], Sequence[tuple[str, NodeClaim]]]


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The answer to a post. ``mirror`` is the version of what the agent mirrors; see ``mirror.version_of``.
    ``pods_interval_seconds`` is how soon it tells what pods moved; None: as the answers to reports say."""

    commands: tuple[Command, ...]
    interval_seconds: int
    mirror: str | None = None
    pods_interval_seconds: int | None = None
    kubeconfig_secrets: bool = False
    """Whether the agent has Secrets to keep, or to remove; see ``kept_secrets``."""
    overlay: OverlayList | None = None
    """The machines of the overlay, where the agent has another list of them."""
    news_of: tuple[NodeClaim, ...] = field(default=(), compare=False)
    """The claims of whose nodes the post says something new."""


def observe(
    services: Services, in_hand: InHand, key: bytes, cluster: Cluster, observation: Mapping[str, Any]
) -> AgentReply:
    """Keep new observations of the claims in work, and return the next steps for them.

    A post that is older than the last one changes nothing. ``in_hand`` gives the claims of a cluster that are being
    worked on; ``key`` is what join tokens are derived from.
    """
    # The facts of the post, of the mirror and of who attends in one query: each is read in every post.
    facts_of_posts = {fact.id: fact for fact in every(services.store, Fact, f"{cluster.id}/{OBSERVED}")}
    last = _summary(facts_of_posts.get(f"{cluster.id}/{OBSERVED}"))
    fresh = last is None or observation["sequence"] > last["sequence"]
    claims = [claim for tenant, claim in in_hand(cluster.id) if tenant == services.tenant]
    mirror = version_of(cluster, facts_of_posts.get(f"{cluster.id}/{MIRROR}"), claims)
    unclaimed = facts_of_posts.get(f"{cluster.id}/{UNCLAIMED}")
    if fresh:
        unclaimed = note_unclaimed(services, cluster, observation["nodes"], unclaimed)
        note_first_node(services, cluster, observation["nodes"], facts_of_posts)
        overlay_paths.note(
            services, cluster, observation["nodes"], facts_of_posts.get(f"{cluster.id}/{overlay_paths.DIGEST}")
        )
    # A cluster that is being made asks often too: its first claims come as soon as it is ready.
    busy = any(not _is_patient(services, claim) for claim in claims) or cluster.status != "ready"
    busy_at = services.now() if busy or last is None else str(last.get("busy_at", ""))
    now = services.clock.now()
    attended_until = facts_of_posts.get(f"{cluster.id}/{ATTENDED}")
    attended = attended_until is not None and now < times.from_text(attended_until.value)
    if fresh:
        _remember(services, cluster, observation, busy_at, None if busy or attended else last)
    commands, news_of = list[Command](), list[NodeClaim]()
    nodes = {node["name"]: node for node in observation["nodes"]}
    done = {result["id"] for result in observation["results"] if result["status"] == "done"}
    holders = {result["id"]: _holders(result["data"]) for result in observation["results"] if "held" in result["data"]}
    for claim in claims:
        facts = facts_of(services, claim)
        if fresh:
            node, before = _own_node(claim, nodes), facts
            facts = _learned(services, claim, facts, node, done, holders.get(command_id(claim, DRAIN)))
            news_of += [claim] if node is not None and facts != before else []
        token = join_token(key, claim.id, claim.attempt)
        # Only what is given back is drained.
        deadline = drain_deadline(claim, drain_seconds(services, claim)) if claim.deleting else None
        commands += commands_of(claim, facts, node_of(facts), token, now, deadline)
    rules = services.settings
    # Each step of a rolling change waits for what the agent tells of the step before.
    rolls = attended and cluster.phase in REPLACING_PHASES
    if busy or rolls or _expects_claims(services, cluster) or _is_new(services, unclaimed):
        pause = rules.agent_busy_seconds
    else:
        pause = min(
            _pause(services, observation, busy_at), rules.agent_quiet_seconds if attended or claims else LONGEST
        )
    # Half of it, so that with the time to the next post nothing is older than two posts.
    pods_pause = rules.agent_busy_seconds if rolls else rules.agent_quiet_seconds // 2
    secrets = any(fact_id.startswith(f"{cluster.id}/{KEPT_SECRETS}-") for fact_id in facts_of_posts)
    members = overlay.news(
        services, cluster, facts_of_posts.get(f"{cluster.id}/{overlay.VERSION}"), observation.get("overlay")
    )
    told_pause = pods_pause if attended else None
    return AgentReply(tuple(commands), pause, mirror, told_pause, secrets, members, tuple(news_of))


def _own_node(claim: NodeClaim, nodes: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The claim's node among those of the cluster, by name.

    Everybody who may label nodes can write a claim's id on any: only the node of the claim's own name is the claim's.
    A node that is called as its cloud calls its machine has to be that machine's; the label comes later.
    """
    if claim.host_name:
        node = nodes.get(claim.host_name)
        is_own = node is not None and str(node.get("provider_id", "")).rpartition("/")[2] == claim.machine_id
        return node if is_own else None
    node = nodes.get(claim.node_name or claim.name)
    return node if node is not None and node.get("claim") == claim.id else None


def _is_patient(services: Services, claim: NodeClaim) -> bool:
    """Whether the claim's node has been drained for so long that it waits for people rather than for the agent."""
    since = claim.deletion_timestamp
    return claim.deleting and since is not None and services.seconds_since(since) > PATIENT_SECONDS


def _holders(data: Mapping[str, Any]) -> str:
    """Words of a drain about the pods that hold it; empty for nothing."""
    texts = data["held"] if isinstance(data["held"], list) else ()
    return "; ".join(str(text)[:MOST_TEXT] for text in texts[:MOST_HOLDERS])


def silence_seconds(services: Services) -> int:
    """For how long an agent that has something to do may say nothing before it counts as gone."""
    return SILENT_SECONDS + services.settings.agent_idle_seconds


def _expects_claims(services: Services, cluster: Cluster) -> bool:
    report = services.store.get(WorkloadReport, cluster.id)
    woken_at = report.woken_at if report is not None else ""
    return bool(woken_at) and services.seconds_since(woken_at) < EXPECTANT_SECONDS


def _is_new(services: Services, unclaimed: Fact | None) -> bool:
    """Whether claims are expected for nodes that have been seen of late without one."""
    return unclaimed is not None and has_any(unclaimed) and services.seconds_since(unclaimed.time) < EXPECTANT_SECONDS


def _pause(services: Services, observation: Mapping[str, Any], busy_at: str) -> int:
    """Seconds until the agent of a cluster comes again of which no claim is worked on."""
    rules = services.settings
    attentive = bool(busy_at) and services.seconds_since(busy_at) < ATTENTIVE_SECONDS
    seconds = rules.agent_quiet_seconds if attentive else rules.agent_idle_seconds
    is_deaf = observation["agent_version"] in DEAF_AGENTS
    of_spot = (node["labels"] for node in observation["nodes"] if node["labels"].get(CAPACITY_TYPE) == SPOT)
    if any(is_deaf or INTERRUPTION not in labels for labels in of_spot):
        return min(seconds, INTERRUPTIBLE_SECONDS)
    return seconds


def last_post(services: Services, cluster_id: str) -> str | None:
    """Moment when the last post of the cluster's agent was remembered, by our clock; None when there was none."""
    last = _summary(services.store.get(Fact, f"{cluster_id}/{OBSERVED}"))
    return str(last["written_at"]) if last else None


def facts_of(services: Services, claim: NodeClaim) -> dict[str, str]:
    """Everything that the agent has told of a claim, by the fact's name."""
    prefix = f"{claim.id}/"
    return {fact.id.removeprefix(prefix): fact.value for fact in every(services.store, Fact, prefix)}


def node_of(facts: Mapping[str, str]) -> dict[str, Any] | None:
    """The claim's node as the agent last saw it; see ``node_commands.seen_of``."""
    node: dict[str, Any] | None = json.loads(facts[NODE]) if NODE in facts else None
    return node


def _summary(fact: Fact | None) -> dict[str, Any] | None:
    summary: dict[str, Any] | None = json.loads(fact.value) if fact else None
    return summary


def ca_hash(services: Services, cluster: Cluster) -> str | None:
    """The hash of the cluster's authority, by which a machine knows the cluster it joins; None before a first post."""
    last = _summary(services.store.get(Fact, f"{cluster.id}/{OBSERVED}"))
    return str(last["ca_hash"]) if last else None


def _remember(
    services: Services,
    cluster: Cluster,
    observation: Mapping[str, Any],
    busy_at: str,
    last: Mapping[str, Any] | None,
) -> None:
    """Write what the post says of the cluster, unless ``last`` says the same and is not old."""
    summary = {
        name: observation[name]
        for name in ("sequence", "observed_at", "agent_version", "kubernetes_version", "ca_hash")
    }
    summary |= {"nodes": len(observation["nodes"]), "busy_at": busy_at}
    # An agent numbers by its clock. One that was ahead must not make those that come after it look old.
    latest = int(services.clock.now().timestamp() * 1000) + AHEAD_SECONDS * 1000
    summary |= {"sequence": min(observation["sequence"], latest), "written_at": services.now()}
    summary["pods"] = _reports_of_pods(services, observation)
    # A write costs as much as all reads of a post: an idle cluster's agent says the same all day.
    fixed = {name: value for name, value in summary.items() if name not in MOVING}
    is_old_news = last is not None and fixed.items() <= last.items()
    if last is None or not is_old_news or services.seconds_since(last["written_at"]) >= REWRITE_SECONDS:
        services.store.commit(Put(Fact(f"{cluster.id}/{OBSERVED}", json.dumps(summary), services.now())))


def _reports_of_pods(services: Services, observation: Mapping[str, Any]) -> dict[str, Any] | None:
    """Progress of the reports of pods by the agent's word, with its times by our clock; None where it does not say."""
    pods = observation.get("pods")
    if pods is None:
        return None
    before = times.from_text(observation["observed_at"]) - times.from_text(pods["true_at"])
    return {**pods, "true_at": times.to_text(services.clock.now() - max(before, timedelta()))}


def _learned(
    services: Services,
    claim: NodeClaim,
    facts: Mapping[str, str],
    node: Mapping[str, Any] | None,
    done: set[str],
    holders: str | None,
) -> dict[str, str]:
    """The facts with what this post adds to them; what is new is written. ``holders`` is what holds the node's pods,
    None where the post does not say it."""
    known_facts = dict(facts)
    if node is not None:
        known_facts[NODE] = json.dumps(seen_of(claim, node))
    if holders is not None and holders != facts.get(HOLDERS, ""):
        known_facts[HOLDERS] = holders
    now = services.now()
    # A token that was made anew is done anew: its moment counts.
    known_facts |= {done_fact(claim, kind): now for kind in KINDS if command_id(claim, kind) in done}
    new = [
        Put(Fact(f"{claim.id}/{name}", value, now)) for name, value in known_facts.items() if facts.get(name) != value
    ]
    if new:
        services.store.commit(*new)
    return known_facts
