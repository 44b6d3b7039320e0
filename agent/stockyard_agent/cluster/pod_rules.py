"""Rules of Kubernetes and of Karpenter on a pod: what keeps it on its node, and what a drain has to move."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ..kubernetes import Object

DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
"""The taint of a node that is emptied."""
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
"""The annotation of a pod, or of a node, that is not to be disrupted: ``true``, or of a pod for how long."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
CRITICAL = ("system-cluster-critical", "system-node-critical")
"""Priority classes of the system."""
FINISHED = ("Succeeded", "Failed")
STUCK = timedelta(minutes=1)
"""A pod that outlives its grace period for longer is not waited for: its kubelet is silent, or its finalizers stay."""
_MIRROR = "kubernetes.io/config.mirror"
_STEPS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_STEP = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)"
_LONGEST = 10.0**9


def has_to_leave(pod: Object) -> bool:
    """Whether the pod has to leave a node that is emptied.

    As with Karpenter these stay: mirrors of static pods, which only their kubelet ends, and pods that tolerate the
    taint of such a node. Other pods of DaemonSets leave; the taint keeps their controller from making them anew.
    """
    return not is_static(pod) and not tolerates((pod.get("spec") or {}).get("tolerations") or (), DISRUPTED)


def is_static(pod: Object) -> bool:
    """Whether it mirrors a static pod: its owner is its node."""
    meta = pod["metadata"]
    owned = any(owner.get("kind") == "Node" for owner in meta.get("ownerReferences") or ())
    return owned or _MIRROR in (meta.get("annotations") or {})


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, str]) -> bool:
    """Whether one of the tolerations is for the taint."""
    return any(
        toleration.get("effect") in (None, "", taint["effect"])
        and toleration.get("key") in (None, "", taint["key"])
        and (
            toleration.get("operator") == "Exists"
            or (bool(toleration.get("key")) and (toleration.get("value") or "") == taint.get("value", ""))
        )
        for toleration in tolerations
    )


def protection_of(pod: Object) -> str:
    """Value of the pod's annotation about disruption; empty for nothing."""
    return str((pod["metadata"].get("annotations") or {}).get(DO_NOT_DISRUPT) or "")


def protected_for(value: str) -> float:
    """For how many seconds from its start the value of the annotation protects a pod: infinite for ``true``, 0 for what
    is no duration of Go."""
    if value == "true":
        return float("inf")
    if not re.fullmatch(rf"\+?({_STEP})+", value):
        return 0.0
    return min(_LONGEST, sum(float(number) * _STEPS[unit] for number, unit in re.findall(_STEP, value)))


def is_protected(value: str, started_at: str, now: datetime) -> bool:
    """Whether a pod with that value of the annotation, started at ``started_at``, is not to be disrupted ``now``. One
    that has not started is protected by any duration."""
    seconds = protected_for(value)
    if not seconds or not started_at or seconds == float("inf"):
        return seconds > 0
    return now < datetime.fromisoformat(started_at) + timedelta(seconds=seconds)


def deletion_cost(pod: Object) -> int:
    """The deletion cost in the pod's annotation, compared with other pods of its owner; 0 for what is no number."""
    text = str((pod["metadata"].get("annotations") or {}).get(DELETION_COST) or "")
    return int(text) if re.fullmatch(r"[+-]?\d{1,10}", text) else 0


def selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects what has these labels. None selects nothing, an empty one all."""
    if not isinstance(selector, Mapping):
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise ValueError(f"a selector has the operator {other}")
