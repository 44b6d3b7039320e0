"""Runs on a node: proves which machine it is, asks how to join its cluster, and writes kubeadm's configuration.

Standard library and the programs beside it only. Its values come from ``node.json``; the token to join with, which it
is given, lives for minutes and is asked for again with each start.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stockyard_machine as machine  # type: ignore[import-not-found]
import stockyard_near  # type: ignore[import-not-found]

CONFIG = os.environ.get("STOCKYARD_CONFIG", "/etc/stockyard/node.json")
CLAIM_TAG = "stockyard:resource"
ATTEMPTS = 60
LONGEST_PAUSE = 60
WATCH_SECONDS = float(os.environ.get("STOCKYARD_WATCH_SECONDS", "5"))
MAINTENANCE_SECONDS = 12 * WATCH_SECONDS
NOTICES = {
    "interruption": ("spot/instance-action", "time"),
    "rebalance": ("events/recommendations/rebalance", "noticeTime"),
    "maintenance": ("events/maintenance/scheduled", "NotBefore"),
}
SOCKET = "unix:///run/containerd/containerd.sock"
ALLOWED_LABELS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
ALLOWED_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")


def metadata(path: str) -> str:
    """Metadata that the cloud tells this machine of itself. Raises ``HTTPError`` 404 for what there is not."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = {"X-aws-ec2-metadata-token": machine.fetch("PUT", machine.METADATA + "/latest/api/token", ttl)}
    return str(machine.fetch("GET", machine.METADATA + "/latest/meta-data/" + path, token)).strip()


def claim() -> str:
    """The id of the claim that this machine was made for, or of the group of claims, from its own tag. Where its
    metadata has no tags, as with one whose key has a slash, the cloud is asked for them."""
    try:
        return metadata("tags/instance/" + CLAIM_TAG)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
    region, keys = machine.instance()
    query = {"Action": "DescribeInstances", "InstanceId.1": metadata("instance-id"), "Version": "2016-11-15"}
    request = ("GET", "ec2." + region + ".amazonaws.com", "/", hashlib.sha256(b"").hexdigest())
    now = datetime.now(timezone.utc)  # noqa: UP017
    described = machine.fetch("GET", machine.signed_url(keys, region, "ec2", request, query, {}, now))
    tag = re.search("<key>" + CLAIM_TAG + "</key>\\s*<value>([^<]+)</value>", described)
    if tag is None:
        raise KeyError(CLAIM_TAG)
    return tag[1]


def prove(node: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """The claim's id, and the proof: the token of ``node.json``, or what the cloud's keys sign."""
    if "token" in node:
        return node["claim_id"], {"token": node["token"]}
    region, keys = machine.instance()
    host = urllib.parse.urlsplit(node["api_url"]).netloc
    return claim(), machine.presign(keys, region, host, datetime.now(timezone.utc))  # noqa: UP017


def post(node: dict[str, str], action: str, **values: Any) -> dict[str, Any]:
    """One request about the claim, with the proof. Raises ``OSError`` when it is not accepted."""
    claim_id, proof = prove(node)
    url = f"{node['api_url']}/v1/node-claims/{claim_id}/{action}"
    body = json.dumps({**proof, "cluster_id": node["cluster_id"], **values}).encode()
    document: dict[str, Any] = json.loads(machine.fetch("POST", url, {"Content-Type": "application/json"}, body))
    return document


def pause_after(error: Exception, attempt: int) -> float:
    """Seconds until the next try: what the answer says, else longer each time."""
    headers = getattr(error, "headers", None)
    seconds = headers.get("Retry-After") if headers is not None else None
    if seconds is not None and str(seconds).isdigit():
        return min(LONGEST_PAUSE, int(seconds))
    return min(30, 2 + attempt)


def accepted(
    step: Callable[[], Any], attempts: int = ATTEMPTS, pause: Callable[[float], None] = time.sleep
) -> dict[str, Any]:
    """Ask until the answer says how to join: the claim's record or the cluster's token may not be there yet."""
    for attempt in range(attempts):
        try:
            answer: dict[str, Any] = step()
        except (OSError, ValueError, KeyError) as error:
            name, code = type(error).__name__, getattr(error, "code", "")
            sys.stderr.write(f"attempt {attempt + 1} failed: {name} {code}\n")
            if attempt + 1 == attempts:
                raise
            pause(pause_after(error, attempt))
        else:
            return answer
    raise OSError("not accepted")


def may_label(key: str) -> bool:
    """Whether a kubelet may give itself the label; of Kubernetes' own domains it may use a few."""
    domain = key.rpartition("/")[0]
    is_foreign = not (domain.endswith(("kubernetes.io", "k8s.io")))
    return (
        is_foreign
        or key in ALLOWED_LABELS
        or any(domain == allowed or domain.endswith("." + allowed) for allowed in ALLOWED_DOMAINS)
    )


def kubeadm(answer: dict[str, Any], provider: str, external: bool = False) -> dict[str, Any]:
    """kubeadm's configuration of a node that joins. ``provider``: its id in its cloud, empty for none.

    ``external``: the cluster has the cloud's controller, which has to see the node before pods do.
    """
    host, port = machine.address(answer["endpoint"])
    labels = ",".join(f"{key}={value}" for key, value in sorted(answer.get("labels", {}).items()) if may_label(key))
    flags = {**answer.get("kubelet_args", {}), **({"provider-id": provider} if provider else {})}
    if provider and external:
        flags["cloud-provider"] = "external"
    if labels:
        flags["node-labels"] = ",".join(part for part in (labels, flags.get("node-labels", "")) if part)
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "token": answer["token"],
                "apiServerEndpoint": f"{host}:{port}",
                "caCertHashes": [answer["ca_hash"]],
            }
        },
        "nodeRegistration": {
            "name": answer["node_name"],
            "criSocket": SOCKET,
            "taints": answer.get("taints", []),
            "kubeletExtraArgs": [{"name": name, "value": str(value)} for name, value in sorted(flags.items())],
        },
    }


def notice(kinds: list[str]) -> dict[str, str]:
    """First notice of these kinds that the cloud gives this machine; empty for nothing."""
    for kind in kinds:
        path, moment = NOTICES[kind]
        try:
            announced = json.loads(metadata(path))
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            continue
        if isinstance(announced, dict):
            return {"kind": kind, "time": announced[moment]}
        times = [scheduled(event[moment]) for event in announced if event["State"] == "active"]
        if times:
            return {"kind": kind, "time": min(times)}
    return {}


def scheduled(moment: str) -> str:
    """A moment of EC2's scheduled events, ``21 Jan 2026 09:00:43 GMT``, as all others are written."""
    return datetime.strptime(moment, "%d %b %Y %H:%M:%S GMT").strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007


def watch(node: dict[str, str], pause: Callable[[float], None] = time.sleep) -> None:
    """Tell Stockyard of each kind of announcement once, until it has heard that the machine ends.

    Only spot machines ask for what is announced to them alone, and often; their Nodes say so, and that they end, by
    which the cluster's agent comes at once. Returns at once on a machine of no cloud, and when there is nothing more to
    tell.
    """
    if "token" in node:
        return
    spot = machine.patiently(lambda: metadata("instance-life-cycle")) == "spot"
    kinds, labelled = list(NOTICES) if spot else ["maintenance"], not spot
    while kinds:
        try:
            announced = notice(kinds)
            if announced:
                post(node, "interruptions", **announced)
                if announced["kind"] == "interruption":
                    # What the cluster does not hear its agent does, when it comes.
                    _ = stockyard_near.label("announced") or stockyard_near.label("announced")
                    return
                kinds = [kind for kind in kinds if kind != announced["kind"]]
                continue
            labelled = labelled or stockyard_near.label("watched")
        except (OSError, ValueError, KeyError) as error:
            sys.stderr.write(f"{type(error).__name__} {getattr(error, 'code', '')}\n")
        pause(WATCH_SECONDS if spot else MAINTENANCE_SECONDS)


def main(arguments: list[str]) -> None:
    """Write ``join.yaml``, which only root can read; or ``watch``; or ``say`` and the arguments of
    ``machine.boot_step``."""
    with open(CONFIG) as file:
        node = json.load(file)
    if arguments == ["watch"]:
        watch(node)
        return
    if arguments:
        post(node, "boot-reports", **machine.boot_step(arguments[1:]))
        return
    provider = "" if "token" in node else machine.patiently(machine.provider_id)
    answer = accepted(lambda: post(node, "join", **machine.overlay_request()))
    host, port = machine.address(answer["endpoint"])
    near = {"host": host, "port": port, "addresses": answer.get("addresses", []), "node_name": answer["node_name"]}
    machine.save("endpoint.json", json.dumps(near) + "\n")
    machine.enter_overlay(answer)
    if answer.get("internal_endpoint"):
        # Whoever answers there has to have the authority that the token's hash pins.
        stockyard_near.write(host, near["addresses"])
    machine.save("join.yaml", json.dumps(kubeadm(answer, provider, "cloud_provider" in node), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
