"""Losses by a deletion, in sentences, for the question before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stockyard_client.errors import ApiError

if TYPE_CHECKING:
    from stockyard_client.client import Client
    from stockyard_client.models import Plan


def of_cluster(client: Client, cluster: str, *, force: bool = False) -> Iterator[str]:
    """The cluster, what was made for it, and its nodes."""
    record = client.clusters.get(cluster)
    if force:
        yield f"Cluster {record.name} ({record.id}) is forgotten; what is left of it in your cloud stays and is billed."
        return
    yield f"Cluster {record.name} ({record.id}, {record.status}) is deleted with everything that runs in it."
    counts = _kinds(client.clusters.plan_delete(cluster)) if record.status != "deleting" else ""
    if counts:
        yield f"What was made for it goes: {counts}."


def of_restore(client: Client, cluster: str, snapshot: str) -> Iterator[str]:
    """Warnings about what the cluster forgets, and the machines that are replaced."""
    plan = client.clusters.plan_restore(cluster, snapshot)
    yield from (str(warning["detail"]) for warning in plan.warnings)
    yield from plan.steps


def of_pool(client: Client, cluster: str, pool: str) -> Iterator[str]:
    """The pool, and how many nodes go."""
    record = client.pools.get(cluster, pool)
    count = record.nodes.claims
    nodes = "its node is" if count == 1 else f"its {count} nodes are"
    yield f"Pool {record.name} of cluster {cluster} is deleted, and {nodes} drained and given back."


def of_claim(client: Client, claim: str) -> Iterator[str]:
    """The claim, and its node."""
    record = client.node_claims.get(claim)
    node = f" Node {record.node_name} is drained and its machine ends." if record.node_name else ""
    yield f"Claim {record.name} of cluster {record.cluster} is given back.{node}"


def of_provider(client: Client, provider: str) -> Iterator[str]:
    """The provider, and how many types go."""
    record = client.node_providers.get(provider)
    yield f"Node provider {record.name} ({record.kind}) is removed with its {len(record.node_types)} node types."


def of_account(client: Client, account: str) -> Iterator[str]:
    """The account. Nothing in the cloud changes."""
    record = client.accounts.get(account)
    yield f"Cloud account {record.id} ({record.name}) is forgotten; what is in the cloud stays as it is."


def of_site(client: Client, site: str) -> Iterator[str]:
    """The site. What stands there stays."""
    record = client.sites.get(site)
    yield f"Site {record.name} is removed and its connector's client ends; what stands there stays as it is."


def of_os_image(client: Client, image: str) -> Iterator[str]:
    """The image's name. What it names stays where it is."""
    record = client.os_images.get(image)
    yield f"OS image {record.name} is removed; {record.url} stays as it is."


def of_profile(client: Client, profile: str) -> Iterator[str]:
    """The profile, and how many versions go."""
    record = client.profiles.get(profile)
    yield f"Profile {record.name} is removed with its {len(record.versions)} versions."


def _kinds(plan: Plan) -> str:
    """Number of things of each kind that go, the most numerous first."""
    counts = Counter(_kind(line) for line in plan.deletes)
    return ", ".join(f"{count} {_plural(kind) if count > 1 else kind}" for kind, count in counts.most_common())


def _kind(line: Any) -> str:
    return re.sub("[_-]", " ", str(line.get("kind") or "thing")) if isinstance(line, dict) else str(line)


def _plural(kind: str) -> str:
    if kind.endswith(("ss", "x", "ch")):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") and not kind.endswith("ay") else f"{kind}s"


def safely(lines: Iterator[str], otherwise: str) -> Iterator[str]:
    """The lines as far as the API tells them; ``otherwise`` where it tells none, so that the question is still put."""
    count = 0
    try:
        for line in lines:
            count += 1
            yield line
    except ApiError:
        if not count:
            yield otherwise
