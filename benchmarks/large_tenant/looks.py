"""Requests that are measured: every list, and what the console asks for."""

from __future__ import annotations

from dataclasses import dataclass

SUMS = "sums over everything that there is; kept"
RARE = "looks for what is rare"
COUNTS = "counts by reading"
CLUSTER = "the whole cluster"
ANEW = "anew"
"""A look before which what others were told is forgotten."""


@dataclass(frozen=True, slots=True)
class Look:
    """A request that is measured. ``whole`` says why it may read more than a page. Before each, nodes of so many
    clusters have ``changed``; with ``anew`` nothing is there that somebody was told before."""

    function: str
    route: str
    query: str = ""
    whole: str = ""
    anew: bool = False
    changed: int = 0

    @property
    def request(self) -> str:
        """``GET /v1/node-claims?phase=Failed``."""
        return self.route + (f"?{self.query}" if self.query else "")

    @property
    def name(self) -> str:
        """The request, and what has been before it."""
        changed = f", {self.changed} clusters have changed" if self.changed else ""
        return f"{self.request}{', made anew' if self.anew else ''}{changed}"


def _claims(query: str = "", whole: str = "") -> Look:
    return Look("node_claims", "GET /v1/node-claims", query, whole)


def _clusters(query: str = "", whole: str = "") -> Look:
    return Look("clusters", "GET /v1/clusters", query, whole)


def _of_cluster(function: str, path: str, query: str = "", whole: str = "") -> Look:
    return Look(function, f"GET /v1/clusters/{{cluster}}{path}", query, whole)


def _events(query: str = "", whole: str = "") -> Look:
    return Look("records", "GET /v1/events", query, whole)


def _operations(query: str = "", whole: str = "") -> Look:
    return Look("records", "GET /v1/operations", query, whole)


LISTS = (
    _claims(),
    _claims("count=true"),
    _claims("order=desc&page_size=50"),
    _claims("cluster={cluster}"),
    _claims("phase=Available"),
    _claims("phase=Failed", RARE),
    _claims("phase=Failed&count=true", RARE),
    _claims("label=none=x", RARE),
    Look("node_claims", "GET /v1/node-claims/{claim}"),
    Look("node_claims", "GET /v1/node-claims/{claim}/explanation"),
    _clusters(),
    _clusters("count=true", COUNTS),
    _of_cluster("clusters", ""),
    _of_cluster("clusters", "/tree", whole=CLUSTER),
    _of_cluster("clusters", "/repave", whole=CLUSTER),
    _of_cluster("clusters", "/network"),
    _of_cluster("clusters", "/certificates"),
    _of_cluster("cluster_profiles", "/profiles"),
    _of_cluster("pools", "/pools", whole=CLUSTER),
    _of_cluster("pools", "/pools/web", whole=CLUSTER),
    _of_cluster("pools", "/usage", whole=CLUSTER),
    _of_cluster("pools", "/disruption", whole=CLUSTER),
    _of_cluster("pools", "/disruption/preview", whole=CLUSTER),
    Look("pools", "GET /v1/disruption"),
    Look("node_providers", "GET /v1/node-providers"),
    Look("node_providers", "GET /v1/node-providers", "offers=true"),
    Look("node_providers", "GET /v1/node-types"),
    Look("node_providers", "GET /v1/node-environments"),
    Look("node_providers", "GET /v1/allowed-node-types"),
    Look("node_providers", "GET /v1/os-images"),
    _operations(),
    _operations("status=failed", RARE),
    _operations("count=true", COUNTS),
    Look("records", "GET /v1/operations/{operation}"),
    Look("records", "GET /v1/operations/{operation}/log"),
    _events(),
    _events("order=desc&subject={cluster}"),
    _events("count=true", COUNTS),
    Look("records", "GET /v1/audit"),
    Look("records", "GET /v1/audit", "actor=user:nobody", RARE),
    Look("records", "GET /v1/quotas", "", "the most that any pool has"),
    Look("records", "GET /v1/prices"),
    Look("records", "GET /v1/health"),
    Look("cloud_accounts", "GET /v1/cloud-accounts"),
    Look("cloud_accounts", "GET /v1/event-accounts"),
    Look("cluster_profiles", "GET /v1/cluster-profiles"),
    Look("sites", "GET /v1/sites"),
    Look("apply", "GET /v1/set-members"),
)
CONSOLE = (
    _clusters("costs=true&page_size=200", "200 of them"),
    _clusters("status=failed&costs=true&page_size=200", RARE),
    _claims("phase=Pending&order=desc&page_size=200", RARE),
    _claims("order=desc&page_size=200", "200 of them"),
    _claims("cluster={cluster}&order=desc&page_size=200", CLUSTER),
    _claims("cluster={cluster}&phase=Pending&order=desc&page_size=200", CLUSTER),
    _of_cluster("pools", "/pools", "page_size=200", CLUSTER),
    _events("order=desc&page_size=50"),
    _events("after={event}"),
    _events("subject={cluster}&order=desc&reason=Progress&page_size=20"),
    _events("subject={claim}&order=desc&page_size=100"),
    _operations("order=desc&page_size=100", "100 of them"),
    _operations("subject={cluster}&order=desc&page_size=50", RARE),
    Look("records", "GET /v1/audit", "order=desc&page_size=100", "100 of them"),
    Look("records", "GET /v1/audit", "order=desc&subject={cluster}&page_size=100"),
    Look("node_providers", "GET /v1/node-types", "provider=ec2&page_size=200"),
)
"""Requests of the console's pages that are no list above."""
OF_SUMS = (
    Look("records", "GET /v1/costs", "cluster={cluster}", SUMS),
    Look("records", "GET /v1/costs", "", SUMS),
    Look("records", "GET /v1/costs", "", SUMS, changed=10),
    Look("records", "GET /v1/costs", "", SUMS, changed=100),
    Look("records", "GET /v1/costs", "max_age=300", SUMS),
    Look("records", "GET /v1/costs", "max_age=300", SUMS, anew=True),
    Look("clusters", "GET /v1/clusters", "costs=true", SUMS, anew=True),
    Look("clusters", "GET /v1/clusters", "costs=true", SUMS, changed=100),
    Look("records", "GET /v1/metrics", "", SUMS),
    Look("records", "GET /v1/metrics", "", SUMS, anew=True),
    Look("records", "GET /v1/metrics", "", SUMS, anew=True, changed=100),
)
LOOKS = (*LISTS, *CONSOLE, *OF_SUMS)
