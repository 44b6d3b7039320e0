"""Quotas of namespaces: how many objects of a kind there may be. Of other quotas nothing is counted here."""

from __future__ import annotations

from collections.abc import Iterator

from local.kubernetes.store import Key, KubeStore, Object, StatusError


def check(store: KubeStore, key: Key) -> None:
    """Raise ``StatusError`` 403 where a quota of the namespace has no room for one more object."""
    counted = f"count/{key.resource}{f'.{key.group}' if key.group else ''}"
    used = sum(
        (other.group, other.resource, other.namespace) == (key.group, key.resource, key.namespace)
        for other in store.objects
    )
    for quota in _quotas(store, key.namespace):
        hard = (quota.get("spec") or {}).get("hard") or {}
        if counted in hard and used + 1 > int(hard[counted]):
            sums = f"requested: {counted}=1, used: {counted}={used}, limited: {counted}={hard[counted]}"
            text = f"{key} is forbidden: exceeded quota: {quota['metadata']['name']}, {sums}"
            raise StatusError(403, text, key=key)


def _quotas(store: KubeStore, namespace: str) -> Iterator[Object]:
    for key, document in store.objects.items():
        if key.resource == "resourcequotas" and namespace and key.namespace == namespace:
            yield document
