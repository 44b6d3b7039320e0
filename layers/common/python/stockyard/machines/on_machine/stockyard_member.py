"""Runs on a further member of a control plane: asks how to join, keeps etcd's list of members, and reports.

Standard library and the programs beside it only. etcd is spoken to by its own JSON interface, because a machine has no
etcdctl before its etcd runs. The key of the authorities stands in ``join.yaml`` until the machine has joined.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stockyard_machine as machine  # type: ignore[import-not-found]
import stockyard_near as near  # type: ignore[import-not-found]
import stockyard_node as node  # type: ignore[import-not-found]

ETCD = os.environ.get("STOCKYARD_ETCD", "/etc/kubernetes/pki/etcd")
ETCD_PORT = 2379
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
SECONDS = 10
STARTS = (2, 5, 10, 15, 20, 30)
"""Pauses in which etcd may begin to answer."""
OWN = "127.0.0.1"


def etcd(address: str, action: str, body: dict[str, Any]) -> dict[str, Any]:
    """A request about etcd's members to the one at the address. Raises ``OSError``."""
    context = ssl.create_default_context(cafile=os.path.join(ETCD, "ca.crt"))
    pair = [os.path.join(ETCD, "healthcheck-client." + end) for end in ("crt", "key")]
    context.load_cert_chain(*pair)
    url = f"https://{address}:{ETCD_PORT}/v3/cluster/member/{action}"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS, context=context) as answer:  # noqa: S310
        document: dict[str, Any] = json.load(answer)
    return document


def members(addresses: Iterable[str]) -> tuple[str, list[dict[str, Any]]]:
    """The first of the addresses whose etcd answers, and the members as its quorum has them. Raises ``OSError``."""
    failure = OSError("no address of a member is known")
    for address in addresses:
        try:
            return address, etcd(address, "list", {"linearizable": True}).get("members", [])
        except OSError as error:
            failure = error
    raise failure


def remove(addresses: Iterable[str], unwanted: Callable[[dict[str, Any]], bool]) -> None:
    """Take members out of etcd. Raises ``OSError``: etcd refuses what would leave it without a quorum."""
    address, present = members(addresses)
    for member in present:
        if unwanted(member):
            sys.stderr.write(f"removes the member {member.get('name') or member['ID']} from etcd\n")
            etcd(address, "remove", {"ID": member["ID"]})


def own_address() -> str:
    """Address of this machine in the network of the others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((endpoint()["host"], endpoint()["port"]))
        return str(probe.getsockname()[0])


def is_own(member: dict[str, Any]) -> bool:
    """Whether the member is this machine, which has no name in etcd before the first start."""
    hosts = [urllib.parse.urlsplit(url).hostname for url in member.get("peerURLs", [])]
    return member.get("name") == load("member.json")["node_name"] or own_address() in hosts


def load(name: str) -> dict[str, Any]:
    """One of the files that ``ask`` has written."""
    with open(os.path.join(machine.STATE, name)) as file:
        document: dict[str, Any] = json.load(file)
    return document


def endpoint() -> dict[str, Any]:
    """The API endpoint and the addresses of the other members."""
    return load("endpoint.json")


def listens(address: str, port: int) -> bool:
    """Whether somebody listens there; kubeadm looks who it is."""
    try:
        socket.create_connection((address, port), near.SECONDS).close()
    except OSError:
        return False
    return True


def ask(values: dict[str, Any]) -> None:
    """Prove who we are, and write kubeadm's configuration and what the API server reads.

    The name of the endpoint leads to members that listen: a load balancer may send this machine to itself.
    """
    provider = "" if "token" in values else machine.patiently(machine.provider_id)
    answer = node.accepted(lambda: node.post(values, "join", **machine.overlay_request()))
    plan = answer["control_plane"]
    host, port = machine.address(answer["endpoint"])
    machine.save("endpoint.json", json.dumps({"host": host, "port": port, "addresses": answer["addresses"]}) + "\n")
    own = machine.enter_overlay(answer)
    near.write(host, [address for address in answer["addresses"] if listens(address, port)])
    kept_plan = {
        "node_name": answer["node_name"],
        "remove_before": plan["remove_before"],
        "workloads": plan["workloads"],
    }
    machine.save("member.json", json.dumps(kept_plan) + "\n")
    machine.api_server(values, plan["certificate_key"])
    if not plan["workloads"] and TAINT["key"] not in [taint["key"] for taint in answer["taints"]]:
        answer["taints"] = [*answer["taints"], TAINT]
    document = node.kubeadm(answer, provider, "cloud_provider" in values)
    document["controlPlane"] = {"certificateKey": plan["certificate_key"]}
    if own:
        document["controlPlane"]["localAPIEndpoint"] = {"advertiseAddress": own}
    if plan.get("restore"):
        restore = {**plan["restore"], "kubernetes_version": plan["kubernetes_version"]}
        machine.install(restore.pop("programs"))
        machine.save("restore.json", json.dumps(restore) + "\n")
    machine.save("join.yaml", json.dumps(document, indent=1) + "\n")


def peers(_: dict[str, Any]) -> None:
    """Keep the addresses of all members whose API server answers, now that this machine may ask the cluster."""
    api = endpoint()
    command = ["kubectl", "get", "--raw", near.MEMBERS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - the command is ours
    listed = [address for address in near.addresses(json.loads(done.stdout)) if address != own_address()]
    api["addresses"] = [address for address in listed if near.answers(address, api["host"], api["port"])]
    machine.save("endpoint.json", json.dumps(api) + "\n")
    near.write(api["host"], api["addresses"])


def make_room(_: dict[str, Any]) -> None:
    """Take out of etcd what would keep this machine from it: dead members, and any that was added and never became a
    voter, of which there may be one at a time."""
    dead = load("member.json")["remove_before"]
    remove(endpoint()["addresses"], lambda member: member.get("name") in dead or bool(member.get("isLearner")))


def leave(_: dict[str, Any]) -> None:
    """Take out of etcd what an earlier try of this machine has left there."""
    remove(endpoint()["addresses"], is_own)


def voter(_: dict[str, Any], pause: Callable[[float], None] = time.sleep) -> None:
    """Raises ``OSError`` unless this machine is a voting member of etcd. After a start etcd needs a while; one that was
    added and never became a voter refuses at once."""
    for seconds in STARTS:
        try:
            present = members([OWN])[1]
            break
        except urllib.error.HTTPError as error:
            if b"learner" in error.read():
                raise
        except OSError:
            pass
        pause(seconds)
    else:
        raise OSError("etcd does not answer")
    if not any(is_own(member) and not member.get("isLearner") for member in present):
        raise OSError("this machine is no voting member of etcd")


def current(values: dict[str, Any]) -> None:
    """Raises ``OSError`` while a voting member of etcd is of another release than this machine."""
    names = {member.get("name") for member in members([OWN])[1]}
    command = ["kubectl", "get", "nodes", "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - the command is ours
    items = json.loads(done.stdout)["items"]
    by_name = {item["metadata"]["name"]: item["status"]["nodeInfo"]["kubeletVersion"] for item in items}
    releases = {by_name.get(name, "") for name in names}
    if releases != {"v" + values["kubernetes_version"]}:
        raise OSError("not all members are of this release")


def settle(_: dict[str, Any]) -> None:
    """From now on the endpoint's name means this machine here: a load balancer does not send a machine's own
    connections back."""
    if near.write(endpoint()["host"], [OWN]):
        subprocess.run(["/bin/sh", "-c", near.RESTART], check=False)  # noqa: S603 - the command is ours


def departures(names: list[str]) -> list[str]:
    """Take the members out of etcd; those that are out of it, which may be none yet."""
    try:
        remove([OWN], lambda member: member.get("name") in names)
    except OSError as error:
        sys.stderr.write(f"{type(error).__name__} {getattr(error, 'code', '')}\n")
        return []
    return names


def kubeconfig() -> dict[str, str]:
    """The administrator's kubeconfig, which people get: that of a member that has left would end a year after it was
    made."""
    with open(os.path.join(machine.KUBERNETES, "admin.conf")) as file:
        text = file.read()
    with open(os.path.join(machine.KUBERNETES, "pki", "ca.crt")) as file:
        authority = base64.b64encode(file.read().encode()).decode()
    return {"kubeconfig": text, "certificate_authority": authority}


def removals() -> list[str]:
    """Members that this machine has taken out of etcd."""
    path = os.path.join(machine.STATE, "removed.json")
    return list(load("removed.json")["names"]) if os.path.exists(path) else []


def tell(values: dict[str, Any], removed: list[str], more: dict[str, str]) -> dict[str, Any]:
    """Report; what is to be done then."""
    post = partial(node.post, values, "member-reports", state="joined", removed=removed, **more)
    answer: dict[str, Any] = node.accepted(post)
    return answer


def renewal(values: dict[str, Any]) -> None:
    """Report the new kubeconfig, once."""
    tell(values, removals(), kubeconfig())


def report(values: dict[str, Any], pause: Callable[[float], None] = time.sleep) -> None:
    """Say that this machine has joined, take out of etcd whom Stockyard names, and go on until nothing is left."""
    own_name: str = load("member.json")["node_name"]
    removed, more = removals(), kubeconfig()
    while True:
        answer = tell(values, removed, more)
        if answer["done"]:
            return
        gone_names = departures([name for name in answer["remove"] if name not in (*removed, own_name)])
        if not gone_names:
            pause(answer["retry_after"])
        removed, more = [*removed, *gone_names], {}
        machine.save("removed.json", json.dumps({"names": removed}))


STEPS = {
    "ask": ask, "backup": machine.backup, "current": current, "leave": leave, "make-room": make_room, "peers": peers,
    "report": report, "renewal": renewal, "settle": settle, "voter": voter,
}  # fmt: skip


def main(arguments: list[str]) -> None:
    """One of ``STEPS``."""
    with open(node.CONFIG) as file:
        values = json.load(file)
    STEPS[arguments[0]](values)


if __name__ == "__main__":
    main(sys.argv[1:])
