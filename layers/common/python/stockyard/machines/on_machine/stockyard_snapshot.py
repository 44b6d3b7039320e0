"""Runs on a member of a control plane when a snapshot of etcd is due: takes one, looks whether it is whole, and puts it
into S3 by the right of the machine's role.

With the snapshot goes what another machine needs to go on with it: the authorities and kubeadm's configuration. They
are sealed by the key that only members of this cluster are given, and bound to the snapshot by its digest.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import io
import json
import os
import subprocess
import sys
import tarfile
import urllib.parse
from datetime import datetime, timezone
from typing import Any

# What every member has, and what this one was given.
sys.path.insert(0, "/usr/local/lib/stockyard")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stockyard_machine as machine  # type: ignore[import-not-found]

S3 = os.environ.get("STOCKYARD_S3", "")
DATA = os.environ.get("STOCKYARD_DATA", machine.DATA)
SNAPSHOT, SEALED = "snapshot.db", "sealed"
PKI = (
    "ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub", "etcd/ca.crt", "etcd/ca.key",
)  # fmt: skip
UNSIGNED = "UNSIGNED-PAYLOAD"
SECONDS = 600
THERE = 412
CIPHER = ["-aes-256-cbc", "-pbkdf2", "-pass", "env:STOCKYARD_SEAL"]


def run(*command: str) -> str:
    """Output of a program. Raises ``OSError`` with its last line when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)  # noqa: S603
    if done.returncode:
        raise OSError(f"{command[0]} ended with {done.returncode}: {''.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout


def crictl(*arguments: str) -> str:
    """Output of ``crictl``."""
    return run("crictl", "--runtime-endpoint", "unix:///run/containerd/containerd.sock", *arguments)


def kubeadm(name: str, key: str) -> str:
    """One of the documents by which kubeadm knows the cluster."""
    path = "jsonpath={.data." + key + "}"
    admin = os.path.join(machine.KUBERNETES, "admin.conf")
    return run(
        "kubectl", "--kubeconfig", admin, "--namespace", "kube-system", "get", "configmap", name, "--output", path
    )


def take(path: str) -> int:
    """Have etcd write a snapshot there, and look whether it is whole; its revision."""
    container = crictl("ps", "--quiet", "--state", "running", "--name", "^etcd$").split()[0]
    pki = os.path.join(machine.KUBERNETES, "pki", "etcd")
    pair = ["--cert", pki + "/healthcheck-client.crt", "--key", pki + "/healthcheck-client.key"]
    client = ["etcdctl", "--endpoints", "https://127.0.0.1:2379", "--cacert", pki + "/ca.crt", *pair]
    crictl("exec", container, *client, "snapshot", "save", path)
    status = json.loads(crictl("exec", container, "etcdutl", "snapshot", "status", "--write-out", "json", path))
    return int(status["revision"])


def seal_key() -> str:
    """Key that seals the authorities, derived from the key that all members of this cluster have."""
    with open(os.path.join(machine.STATE, machine.API_FOLDER, "encryption.yaml")) as file:
        keys = json.load(file)["resources"][0]["providers"][0]["secretbox"]["keys"]
    shared = next((key["secret"] for key in keys if key["name"] == "shared"), None)
    if shared is None:
        raise ValueError("this control plane has no key that its members share")
    return hmac.new(shared.encode(), b"snapshots", hashlib.sha256).hexdigest()


def cipher(key: str, text: bytes, *options: str) -> bytes:
    """The text sealed; with ``-d`` what was sealed."""
    command = ["openssl", "enc", *options, *CIPHER]
    secret = {**os.environ, "STOCKYARD_SEAL": key}
    return subprocess.run(command, input=text, capture_output=True, check=True, env=secret).stdout  # noqa: S603


def authentication_code(key: str, content: bytes) -> bytes:
    """64 letters by which it is known that nobody has changed the content."""
    return hmac.new(key.encode(), content, hashlib.sha256).hexdigest().encode()


def digest(path: str) -> str:
    """Digest of a file."""
    hashing = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            hashing.update(part)
    return hashing.hexdigest()


def pack(snapshot: str, target: str) -> None:
    """Write the snapshot, compressed, and the sealed keys into one file."""
    files = {}
    for name in PKI:
        with open(os.path.join(machine.KUBERNETES, "pki", name)) as file:
            files[name] = file.read()
    documents = [kubeadm("kubeadm-config", "ClusterConfiguration"), kubeadm("kubelet-config", "kubelet")]
    content = {"sha256": digest(snapshot), "pki": files, "kubeadm": documents}
    key = seal_key()
    sealed = cipher(key, json.dumps(content).encode())
    with tarfile.open(target, "w:gz", compresslevel=3) as archive:
        entry = tarfile.TarInfo(SEALED)
        text = authentication_code(key, sealed) + sealed
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
        archive.add(snapshot, SNAPSHOT)


def request(location: dict[str, str], method: str, headers: dict[str, str], body: Any = None) -> Any:
    """The open answer of S3 about the object at ``location``. Raises ``OSError``."""
    _, keys = machine.instance()
    base = urllib.parse.urlsplit(S3 or "https://s3." + location["region"] + ".amazonaws.com")
    signing = (method, base.netloc, "/" + location["bucket"] + "/" + location["key"], UNSIGNED)
    moment = datetime.now(timezone.utc)  # noqa: UP017
    url = urllib.parse.urlsplit(machine.signed_url(keys, location["region"], "s3", signing, {}, headers, moment))
    kind = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    connection = kind(base.netloc, timeout=SECONDS)
    connection.request(method, url.path + "?" + url.query, body, headers)
    answer = connection.getresponse()
    if answer.status >= 300 and answer.status != THERE:
        raise OSError(f"S3 answers {answer.status}: {answer.read(500).decode(errors='replace')}")
    return answer


def send(location: dict[str, str], path: str, release: str) -> int:
    """Put the file there, unless another member was faster; its size."""
    size = os.path.getsize(path)
    # The whole request is made anew where something fails: one name is one snapshot.
    headers = {"if-none-match": "*", "content-length": str(size), "x-amz-meta-release": release}
    with open(path, "rb") as file:
        request(location, "PUT", headers, file)
    return size


def reason(error: Exception) -> str:
    """Reason of an error, in a few words."""
    return f"{type(error).__name__}: {error}"[:500]


def main() -> None:
    """Take the snapshot that is due, and say how that went."""
    with open(os.path.join(machine.STATE, "snapshot.json")) as file:
        due = json.load(file)
    values = due["machine"]
    snapshot = os.path.join(DATA, "stockyard-snapshot.db")
    packed = os.path.join(machine.STATE, "snapshot.tar.gz")
    report: dict[str, Any] = {"id": due["id"]}
    try:
        report["revision"] = take(snapshot)
        pack(snapshot, packed)
        report["size"] = send(due, packed, values["kubernetes_version"])
    except (OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as error:
        report["failure"] = reason(error)
    finally:
        for name in (snapshot, packed):
            if os.path.exists(name):
                os.remove(name)
    machine.post(values, "snapshot-reports", {**machine.prove(values), "report": report})
    sys.exit("failure" in report)


if __name__ == "__main__":
    main()
