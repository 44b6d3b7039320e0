"""Requests to the API, of people and of the agents of clusters."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from benchmarks.virtual_fleet.clusters import FleetCluster
from benchmarks.virtual_fleet.posts import PLAYED, Post
from benchmarks.virtual_fleet.stage import FleetStage


def send(
    stage: FleetStage,
    of: FleetCluster,
    function: str,
    route: str,
    body: bytes = b"",
    parameters: Mapping[str, str] | None = None,
    *,
    machine: bool = False,
    query: str = "",
    post: Post | None = None,
) -> tuple[int, Any]:
    """Send a request for a route (``GET /v1/clusters/{id}``) and wait: the status, and the body of the answer. Of an
    agent (``machine``), else of an administrator of the cluster's tenant. ``post`` is what the body leaves out."""
    method, _, template = route.partition(" ")
    own: dict[str, Any] = {"organization": [of.tenant.name]}
    own |= (
        {"sub": "service", "azp": of.cluster.client_id}
        if machine
        else {"sub": "ann", "realm_access": {"roles": ["stockyard-admin"]}}
    )
    payload = urlsafe_b64encode(json.dumps(own).encode()).decode().rstrip("=")
    packed = machine and len(body) > 1024
    kind = "application/gzip" if packed else "application/json"
    headers = {"authorization": f"Bearer x.{payload}.x", "content-type": kind}
    path = template.format(**(parameters or {}))
    event = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": query,
        "queryStringParameters": _pairs(query),
        "pathParameters": dict(parameters) if parameters else None,
        "headers": {**headers, "idempotency-key": stage.delays.bytes(8).hex()},
        "requestContext": {
            "http": {"method": method, "path": path},
            "requestId": "r",
            "authorizer": {"jwt": {"claims": {}}},
        },
        "body": b64encode(gzip.compress(body, 1, mtime=0) if packed else body).decode(),
        "isBase64Encoded": True,
        PLAYED: post,
    }
    draw = stage.delays.draw
    stage.time.sleep(draw("network") + draw("gateway") + draw("invoke"))
    began = stage.time.now
    answer = stage.invoke(function, event)
    stage.tally.counts["requests"] += 1
    if not machine:
        stage.tally.late[f"answer to {route}"].append(stage.time.now - began)
    stage.time.sleep(draw("network"))
    status = int(answer["statusCode"])
    if status >= 300:
        stage.tally.counts[f"refused: {route} {status}"] += 1
        stage.tally.examples.setdefault(f"{route} {status}", str(answer["body"])[:300])
    return status, json.loads(answer["body"] or "null") if status < 300 else None


def _pairs(query: str) -> Mapping[str, str] | None:
    return dict(pair.split("=", 1) for pair in query.split("&")) if query else None
