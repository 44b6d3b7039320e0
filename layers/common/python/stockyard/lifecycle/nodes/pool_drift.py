"""Whether a node is still what its pool would make: pure functions of the pool and the claim.

Static drift is a change of the pool's template: everything that a node is made with, but the requirements. Those may
change without a node being wrong, so its labels are asked instead. How many nodes a pool has, what they may cost and
when they may go is neither.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stockyard.domain.pools.node_groups import MACHINE
from stockyard.domain.pools.records import NewPool, Pool
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import durations
from stockyard.domain.values.requirements import INSTANCE_TYPE, NODE_TYPE, Requirement, Requirements

NODE_POOL, REQUIREMENTS, CLUSTER = "NodePoolDrifted", "RequirementsDrifted", "ClusterDrifted"
REASONS = (NODE_POOL, REQUIREMENTS, CLUSTER)
_RULES = "1"
"""Of what a hash is made. One of other rules is not compared."""
_DIGITS = 16
_NAME_KEYS = (NODE_TYPE, INSTANCE_TYPE)


def template_hash(pool: NewPool | Pool) -> str:
    """A hash of the pool's template but its requirements. Equal templates that are written differently have one."""
    template = {
        "provider": pool.provider_ref,
        "nodeClass": pool.document.get("nodeClassRef"),
        "properties": dict(pool.properties),
        "labels": dict(pool.labels),
        "annotations": dict(pool.annotations),
        "taints": _set_of(pool.taints),
        "startupTaints": _set_of(pool.startup_taints),
        "kubeletArgs": dict(pool.kubelet_args),
        "expireAfter": durations.seconds(pool.expire_after),
        "terminationGracePeriod": durations.seconds(pool.termination_grace_period),
        **({MACHINE: pool.document[MACHINE]} if MACHINE in pool.document else {}),
    }
    text = json.dumps(template, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"{_RULES}:{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def requirements_drifted(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels breaks a requirement. A label that the node lacks breaks those that need it."""
    return any(not _fits(requirement, _values(labels, key)) for key, requirement in requirements.items())


def pool_drift(
    pool: Pool, requirements: Requirements, current_hash: str, claim: NodeClaim, nodes_since: str = ""
) -> tuple[str, ...]:
    """The reasons for which the claim's node differs from new nodes of its pool, whose template has the hash
    ``current_hash``; ``requirements`` are the pool's."""
    reasons = []
    before = claim.pool_hash
    if before and before.partition(":")[0] == _RULES and before != current_hash:
        reasons.append(NODE_POOL)
    if claim.created_at < nodes_since:
        reasons.append(CLUSTER)
    if claim.pool_generation != pool.generation and _breaks(claim, requirements):
        reasons.append(REQUIREMENTS)
    return tuple(reasons)


def _breaks(claim: NodeClaim, requirements: Requirements) -> bool:
    """Whether the node breaks a requirement that the claim did not have when the node was chosen for it. One that it
    had is kept, though no label may tell of it."""
    labels = _labels(claim)
    broken = [key for key, requirement in requirements.items() if not _fits(requirement, labels(key))]
    if not broken:
        return False
    own = Requirements.of(claim.requirements)
    return any(key not in own or own[key].intersection(requirements[key]) != own[key] for key in broken)


def _labels(claim: NodeClaim) -> Any:
    """Values that the node's label of a key may have: a requirement may spell a node type in several ways."""
    canonical = claim.placement.type if claim.placement is not None else claim.type_ref
    names = {canonical, canonical.partition(".")[2]} - {""}

    def values(key: str) -> Sequence[str]:
        labels = _values(claim.node_labels, key)
        return sorted({*labels, *names}) if labels and key in _NAME_KEYS else labels

    return values


def _values(labels: Mapping[str, str], key: str) -> Sequence[str]:
    return (labels[key],) if key in labels else ()


def _fits(requirement: Requirement, values: Sequence[str]) -> bool:
    if not values:
        return requirement.absence_fits
    return (all if requirement.complement else any)(map(requirement.has, values))


def _set_of(taints: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    written = ({name: value for name, value in taint.items() if value not in (None, "")} for taint in taints)
    return sorted(written, key=lambda taint: json.dumps(taint, sort_keys=True))
