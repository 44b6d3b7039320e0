"""Parts of objects that clients read and write by themselves: how many pods a workload has, and what pods do not have
here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.kubernetes.store import Key, KubeStore, Object, StatusError

IN_NAME_ONLY: Mapping[str, str] = {
    "log": "there are no logs of pod {name}",
    "exec": "nothing can be run in pod {name}",
    "attach": "nothing in pod {name} can be attached to",
    "portforward": "pod {name} has no ports",
    "ephemeralcontainers": "pod {name} takes no container beside its own",
}
"""Subresource of a pod -> why it has none."""


def refusal(part: str, name: str) -> StatusError:
    """Refusal of a part that pods do not have here."""
    return StatusError(400, f"pods of a simulated cluster run in name only: {IN_NAME_ONLY[part].format(name=name)}")


def scale_of(workload: Object) -> Object:
    """Number of pods that a workload is to have, and has."""
    meta, spec = workload["metadata"], workload.get("spec") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    about = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": about,
        "spec": {"replicas": int(spec.get("replicas", 1))},
        "status": {
            "replicas": int((workload.get("status") or {}).get("replicas") or 0),
            "selector": ",".join(f"{name}={value}" for name, value in sorted(labels.items())),
        },
    }


def scaled(store: KubeStore, key: Key, body: Mapping[str, Any]) -> Object:
    """Give a workload the number of pods of a ``Scale``, or of a patch of one. Raises ``StatusError`` 404, 409, 422."""
    workload = store.get(key)
    replicas = (body.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        text = f'Scale.autoscaling "{key.name}" is invalid: spec.replicas: Invalid value: {replicas}'
        raise StatusError(422, f"{text}: must be greater than or equal to 0", key=key)
    version = (body.get("metadata") or {}).get("resourceVersion")
    meta = {**workload["metadata"], **({"resourceVersion": version} if version else {})}
    return scale_of(
        store.replace(key, {**workload, "metadata": meta, "spec": {**workload["spec"], "replicas": replicas}})
    )
