"""Objects in a host that belong to no record: listed by their marks, and removed one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.ports import Tagged
from stockyard.providers.clouds.kubernetes import bare_metal
from stockyard.providers.clouds.kubernetes.features import Kind
from stockyard.providers.clouds.kubernetes.marks import RESOURCE, TENANT, label_value, labels_of, selector, tagged
from stockyard.providers.kubernetes.client import KubernetesApi


def marked(api: KubernetesApi, kinds: Sequence[Kind], space: str, installation: str, tenant: str) -> Iterator[Tagged]:
    """Objects of these kinds in a namespace that carry the tenant's marks."""
    for kind in kinds:
        for document in api.list(kind.api_version, kind.kind, space, selector(installation, tenant)):
            thing = tagged(kind.kind, document, installation, tenant)
            if thing is not None and not (kind.lent and bare_metal.holder(document) is None):
                yield thing


def remove(api: KubernetesApi, kinds: Sequence[Kind], thing: Tagged, tenant: str) -> bool:
    """Remove one orphan, or give it back where it is lent; True when it is gone. Nothing of another tenant or record is
    touched, nor of another kind."""
    kind = next((kind for kind in kinds if kind.kind == thing.kind), None)
    if kind is None or thing.tenant != tenant:
        return False
    there = api.get(kind.api_version, kind.kind, thing.vendor_id, thing.region)
    if there is None or (kind.lent and bare_metal.holder(there) is None):
        return True
    labels = labels_of(there)
    if (labels.get(TENANT), labels.get(RESOURCE)) != (label_value(tenant), label_value(thing.resource_id)):
        return False
    if kind.lent:
        return bare_metal.given_back(api, there, at_once=True)
    api.delete(kind.api_version, kind.kind, thing.vendor_id, thing.region)
    return api.get(kind.api_version, kind.kind, thing.vendor_id, thing.region) is None
