"""Runs on a member of a control plane that is to begin it anew from a snapshot in S3: fetches the snapshot, looks that
it is whole and this cluster's, restores etcd's data, and has kubeadm begin a control plane over them.

What the snapshot says is trusted only when it was sealed by the key that this cluster's members are given.
"""

from __future__ import annotations

import hmac
import json
import os
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from typing import Any

# What every member has, and what this one was given.
sys.path.insert(0, "/usr/local/lib/stockyard")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stockyard_machine as machine  # type: ignore[import-not-found]
import stockyard_member as member  # type: ignore[import-not-found]
import stockyard_snapshot as snapshot  # type: ignore[import-not-found]

ADDRESS = os.environ.get("STOCKYARD_ADDRESS", "")
PEER_PORT = 2380
CONFIGURATION = "restored.yaml"
UNOWNED = '{"metadata":{"ownerReferences":null}}'
"""kubeadm's Secret of the sealed authorities would go with its token after two hours."""


def fetch(location: dict[str, str], path: str) -> None:
    """Write the object there. The role may read it some seconds after Stockyard has asked for that."""

    def once() -> None:
        with snapshot.request(location, "GET", {}) as answer, open(path, "wb") as file:
            shutil.copyfileobj(answer, file)

    machine.patiently(once)


def part(archive: tarfile.TarFile, name: str) -> Any:
    """A file of the archive. Raises ``ValueError`` where it is none."""
    file = archive.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is no file")
    return file


def unpack(path: str, target: str) -> dict[str, Any]:
    """The sealed part of a packed snapshot; the snapshot itself is written to ``target``. ``ValueError`` for one that
    was not sealed by this cluster, or that is not the one that was sealed."""
    key = snapshot.seal_key()
    with tarfile.open(path, "r:gz") as archive:
        text: bytes = part(archive, snapshot.SEALED).read()
        if not hmac.compare_digest(text[:64], snapshot.authentication_code(key, text[64:])):
            raise ValueError("the snapshot was not sealed by this cluster")
        with open(target, "wb") as file:
            shutil.copyfileobj(part(archive, snapshot.SNAPSHOT), file)
    content: dict[str, Any] = json.loads(snapshot.cipher(key, text[64:], "-d"))
    if snapshot.digest(target) != content["sha256"]:
        raise ValueError("the snapshot is not the one that was sealed")
    return content


def authorities(files: dict[str, str]) -> None:
    """Write them where kubeadm looks for them."""
    for name, text in files.items():
        if name in snapshot.PKI:
            path = os.path.join(machine.KUBERNETES, "pki", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(text)


def configuration(documents: list[str], release: str) -> str:
    """kubeadm's: this machine's part as it would join, and the cluster's as the snapshot's control plane had it."""
    with open(os.path.join(machine.STATE, "join.yaml")) as file:
        join = json.load(file)
    init = {
        "apiVersion": join["apiVersion"],
        "kind": "InitConfiguration",
        "certificateKey": join["controlPlane"]["certificateKey"],
        "nodeRegistration": join["nodeRegistration"],
    }
    lines = [
        "kubernetesVersion: v" + release if line.startswith("kubernetesVersion: ") else line
        for line in documents[0].splitlines()
    ]
    return "\n---\n".join([json.dumps(init, indent=1), "\n".join(lines), *documents[1:]]) + "\n"


def command(*words: str) -> None:
    """Run it; what it prints goes to the log. Raises ``CalledProcessError``."""
    subprocess.run(words, check=True)  # noqa: S603 - the command is ours


def restore(target: str) -> None:
    """etcd's data from the snapshot, as those of a new cluster of this member alone. The higher revision makes every
    controller read anew instead of trusting what it remembers. A machine has etcd's programs in its image only."""
    folder, name = os.path.dirname(target), member.load("member.json")["node_name"]
    peer = f"https://{ADDRESS or member.own_address()}:{PEER_PORT}"
    listed = snapshot.run("kubeadm", "config", "images", "list", "--config", os.path.join(machine.STATE, CONFIGURATION))
    image = next(line for line in listed.split() if "/etcd:" in line)
    machine.patiently(partial(snapshot.crictl, "pull", image), 8)
    mount = f"type=bind,src={folder},dst={folder},options=rbind:rw"
    command(
        *("ctr", "--namespace", "k8s.io", "run", "--rm", "--mount", mount, image, "restore"),
        *("etcdutl", "snapshot", "restore", target, "--data-dir", snapshot.DATA),
        *("--bump-revision", "1000000000", "--mark-compacted"),
        *("--name", name, "--initial-cluster", f"{name}={peer}", "--initial-advertise-peer-urls", peer),
    )
    os.remove(target)


def begin() -> None:
    """The control plane over those data, with all that kubeadm gives a new one; and what the first member of a new one
    takes away, see ``control_plane.sh``."""
    command(
        *("kubeadm", "init", "--config", os.path.join(machine.STATE, CONFIGURATION), "--upload-certs"),
        *("--skip-certificate-key-print", "--skip-token-print", "--ignore-preflight-errors=all"),
    )
    admin = ("kubectl", "--kubeconfig", os.path.join(machine.KUBERNETES, "admin.conf"))
    for words in (
        ("get", "--raw", "/readyz"),
        ("delete", "clusterrolebinding", "kubeadm:node-autoapprove-bootstrap", "--ignore-not-found"),
        ("--namespace", "kube-system", "patch", "secret", "kubeadm-certs", "--patch", UNOWNED),
    ):
        machine.patiently(partial(snapshot.run, *admin, *words), 8)


def main() -> None:
    """Begin the control plane anew from the snapshot that ``restore.json`` names."""
    with open(os.path.join(machine.STATE, "restore.json")) as file:
        location = json.load(file)
    folder = os.path.dirname(snapshot.DATA)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    packed, target = os.path.join(folder, "snapshot.tar.gz"), os.path.join(folder, snapshot.SNAPSHOT)
    fetch(location, packed)
    content = unpack(packed, target)
    os.remove(packed)
    authorities(content["pki"])
    machine.save(CONFIGURATION, configuration(content["kubeadm"], location["kubernetes_version"]))
    restore(target)
    # The endpoint's name leads to members of before, which may still be there. Not before this machine has asked for
    # its own address, which is the one that it reaches them from.
    member.near.write(member.endpoint()["host"], [member.OWN])
    begin()


if __name__ == "__main__":
    main()
