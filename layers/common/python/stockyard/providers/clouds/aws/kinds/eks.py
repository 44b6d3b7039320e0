"""The kinds of EKS. Each but the cluster is known by the cluster's name and its own: ``cluster/name``.

EKS finds nothing by tags, so each cluster of the region is looked at, and what is in those that are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds.base import Kind, State, TaggedThing

_OF_PARENT = (tags.INSTALLATION, tags.TENANT, tags.RESOURCE)
"""The tags that what is in a cluster shares with it. Its generation may be another one."""
_STATES = {
    "CREATING": State.PENDING,
    "PENDING": State.PENDING,
    "FAILED": State.FAILED,
    "CREATE_FAILED": State.FAILED,
    "DELETE_FAILED": State.FAILED,
    "DELETING": State.LEAVING,
}


def state_of(item: Mapping[str, Any]) -> State:
    """The state that EKS tells; what is being updated or ails is there."""
    return _STATES.get(str(item.get("status")), State.PRESENT)


def of_parent(required_tags: Mapping[str, str]) -> dict[str, str]:
    """Select the tags that the thing around it carries too."""
    return {key: value for key, value in required_tags.items() if key in _OF_PARENT}


def in_cluster(vendor_id: str) -> tuple[str, str]:
    """The cluster's name and the thing's own. An ARN may be the latter, with slashes."""
    cluster, _, name = vendor_id.partition("/")
    return cluster, name


def _cluster(calls: Calls, name: str) -> dict[str, Any]:
    described: dict[str, Any] = calls.call("eks", "describe_cluster", name=name)["cluster"]
    return described


def _clusters(calls: Calls, required_tags: Mapping[str, str], named: str | None) -> Sequence[TaggedThing]:
    if named:
        return list(_with_tags(calls, [named]))
    # Five kinds begin with this list.
    things = calls.once("eks clusters", lambda: _with_tags(calls, calls.pages("eks", "list_clusters", "clusters")))
    return [thing for thing in things if tags.carries(thing.tags, required_tags)]


def _with_tags(calls: Calls, names: Iterable[Any]) -> Iterator[TaggedThing]:
    for name in map(str, names):
        with suppress(VendorNotFound):
            known_tags = calls.tags_of("eks_cluster", name)
            yield TaggedThing(name, _cluster(calls, name).get("tags") or {} if known_tags is None else known_tags)


def _delete_cluster(calls: Calls, name: str) -> None:
    calls.call("eks", "delete_cluster", name=name)


CLUSTER = Kind("eks_cluster", _clusters, _cluster, _delete_cluster, state_of, repeatable=True, named=True, later=True)

Describe = Callable[[Calls, str, str], Mapping[str, Any]]


def _inside(
    kind_name: str,
    listing: tuple[str, str],
    describe: Describe,
    remove: Callable[[Calls, str, str], None],
    numbered: bool = False,
) -> Kind:
    """``listing``: the operation and the key that name all things of the kind in a cluster. ``numbered``: EKS chooses
    the id, so that a name says no more than the cluster."""

    def describe_one(calls: Calls, vendor_id: str) -> Mapping[str, Any]:
        return describe(calls, *in_cluster(vendor_id))

    def within(calls: Calls, cluster: str) -> Iterator[str]:
        with suppress(VendorNotFound):
            for item in calls.pages("eks", listing[0], listing[1], clusterName=cluster):
                entry: Any = item
                name = entry["associationId"] if isinstance(entry, Mapping) else entry
                yield f"{cluster}/{name}"

    def search(calls: Calls, required_tags: Mapping[str, str], named: str | None) -> Sequence[TaggedThing]:
        if named and numbered:
            ids = list(within(calls, in_cluster(named)[0]))
        elif named:
            ids = [named]
        else:
            clusters = [
                cluster
                for cluster in _clusters(calls, of_parent(required_tags), None)
                if not calls.rests(cluster.tags.get(tags.RESOURCE, ""))
            ]
            ids = [vendor_id for cluster in clusters for vendor_id in within(calls, cluster.vendor_id)]
        things = []
        for vendor_id in ids:
            with suppress(VendorNotFound):
                known_tags = calls.tags_of(kind_name, vendor_id)
                asked_tags = describe_one(calls, vendor_id).get("tags") or {} if known_tags is None else known_tags
                things.append(TaggedThing(vendor_id, asked_tags))
        by_name = named and not numbered
        return [thing for thing in things if by_name or tags.carries(thing.tags, required_tags)]

    return Kind(
        kind_name,
        search,
        describe_one,
        lambda calls, vendor_id: remove(calls, *in_cluster(vendor_id)),
        state_of,
        repeatable=True,
        named=True,
        later=True,
    )


def _described(operation: str, key: str, parameter: str) -> Describe:
    def describe(calls: Calls, cluster: str, name: str) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = calls.call("eks", operation, clusterName=cluster, **{parameter: name})[key]
        return answer

    return describe


def _removed(operation: str, parameter: str, **more: Any) -> Callable[[Calls, str, str], None]:
    def remove(calls: Calls, cluster: str, name: str) -> None:
        calls.call("eks", operation, clusterName=cluster, **{parameter: name}, **more)

    return remove


NODE_GROUP = _inside(
    "node_group",
    ("list_nodegroups", "nodegroups"),
    _described("describe_nodegroup", "nodegroup", "nodegroupName"),
    _removed("delete_nodegroup", "nodegroupName"),
)
ADDON = _inside(
    "addon",
    ("list_addons", "addons"),
    _described("describe_addon", "addon", "addonName"),
    _removed("delete_addon", "addonName", preserve=False),
)
ACCESS_ENTRY = _inside(
    "access_entry",
    ("list_access_entries", "accessEntries"),
    _described("describe_access_entry", "accessEntry", "principalArn"),
    _removed("delete_access_entry", "principalArn"),
)
POD_IDENTITY = _inside(
    "pod_identity",
    ("list_pod_identity_associations", "associations"),
    _described("describe_pod_identity_association", "association", "associationId"),
    _removed("delete_pod_identity_association", "associationId"),
    numbered=True,
)
