"""Runs on a machine and proves which one it is.

Standard library only, because it runs before anything else is installed. It is written to the machine at its first
boot; its values come from ``machine.json``, whose only secret is the token of a machine without keys of its cloud.
On a control plane ``stockyard_machine_member`` stands below it in the same file, and on the first member of one
``stockyard_machine_first`` below both.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from datetime import datetime
from typing import Any

CONFIG = os.environ.get("STOCKYARD_CONFIG", "/etc/stockyard/machine.json")
STATE = os.environ.get("STOCKYARD_STATE", "/etc/stockyard")
METADATA = os.environ.get("STOCKYARD_METADATA", "http://169.254.169.254")
KUBERNETES = os.environ.get("STOCKYARD_KUBERNETES", "/etc/kubernetes")
ATTEMPTS = 40
HOST_HEADER = "x-stockyard-host"
USER_PREFIX = "oidc:"
API_FOLDER = "api"
DATA = "/var/lib/control-plane/etcd"


def fetch(method: str, url: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> str:
    """The text of an answer. Raises ``OSError`` (``URLError``) for anything but 2xx."""
    request = urllib.request.Request(url, data=body, headers=headers or {}, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return str(answer.read().decode())


def patiently(step: Callable[[], Any], attempts: int = ATTEMPTS, pause: Callable[[float], None] = time.sleep) -> Any:
    """Call ``step`` until it answers: the role, the record or the network may not be there yet."""
    for attempt in range(attempts - 1):
        try:
            return step()
        except (OSError, ValueError, KeyError) as error:
            name, code = type(error).__name__, getattr(error, "code", "")
            sys.stderr.write(f"attempt {attempt + 1} failed: {name} {code}\n")
        pause(min(30, 2 + attempt))
    return step()


def instance() -> tuple[str, dict[str, str]]:
    """Region and temporary keys of the instance's role, by IMDSv2."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = {"X-aws-ec2-metadata-token": fetch("PUT", METADATA + "/latest/api/token", ttl)}
    root = METADATA + "/latest/meta-data/"
    region = fetch("GET", root + "placement/region", token).strip()
    role = fetch("GET", root + "iam/security-credentials/", token).split()[0]
    return region, json.loads(fetch("GET", root + "iam/security-credentials/" + role, token))


def provider_id() -> str:
    """Provider id, by which cloud controllers know the machine: ``aws:///{zone}/{instance}``. It cannot be given to a
    node later."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = {"X-aws-ec2-metadata-token": fetch("PUT", METADATA + "/latest/api/token", ttl)}
    root = METADATA + "/latest/meta-data/"
    zone = fetch("GET", root + "placement/availability-zone", token).strip()
    return "aws:///" + zone + "/" + fetch("GET", root + "instance-id", token).strip()


def signed_url(
    keys: dict[str, str], region: str, service: str, request: tuple[str, str, str, str], query: dict[str, str],
    headers: dict[str, str], moment: datetime,
) -> str:  # fmt: skip
    """A URL that is signed for five minutes. ``request``: method, host, path, and the digest of what is sent.
    ``headers`` have to come with it, in small letters."""
    method, host, path, payload = request
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    scope = "/".join([stamp[:8], region, service, "aws4_request"])
    sent = sorted({**headers, "host": host}.items())
    names = ";".join(name for name, _ in sent)
    query = {
        **query,
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": keys["AccessKeyId"] + "/" + scope,
        "X-Amz-Date": stamp,
        "X-Amz-Expires": "300",
        "X-Amz-SignedHeaders": names,
        "X-Amz-Security-Token": keys["Token"],
    }
    quoted = "&".join(k + "=" + urllib.parse.quote(v, safe="-_.~") for k, v in sorted(query.items()))
    lines = "".join(name + ":" + value + "\n" for name, value in sent)
    canonical = "\n".join([method, path, quoted, lines, names, payload])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + keys["SecretAccessKey"]).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return "https://" + host + path + "?" + quoted + "&X-Amz-Signature=" + signature


def presign(keys: dict[str, str], region: str, host: str, moment: datetime) -> dict[str, Any]:
    """A presigned ``sts:GetCallerIdentity`` whose signature covers the name of the host it is meant for."""
    request = ("GET", "sts." + region + ".amazonaws.com", "/", hashlib.sha256(b"").hexdigest())
    query, headers = {"Action": "GetCallerIdentity", "Version": "2011-06-15"}, {HOST_HEADER: host}
    url = signed_url(keys, region, "sts", request, query, headers, moment)
    return {"method": "GET", "url": url, "headers": headers}


def address(endpoint: str) -> tuple[str, int]:
    """Host and port of an endpoint, which may or may not be a URL."""
    parts = urllib.parse.urlsplit(endpoint if "//" in endpoint else "//" + endpoint)
    return parts.hostname or "", parts.port or 6443


def save(name: str, text: str) -> None:
    """Write a file that only root can read."""
    path = os.path.join(STATE, name)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def overlay_request() -> dict[str, str]:
    """Fields of a request for an address in the overlay of the cluster; empty where that has none."""
    try:
        with open(os.path.join(STATE, "overlay.request")) as file:
            request: dict[str, str] = json.load(file)
    except FileNotFoundError:
        return {}
    return request


def enter_overlay(answer: dict[str, Any]) -> str:
    """Enter the overlay as an answer says. The machine's address there; empty for no overlay."""
    configuration = answer.pop("overlay", None)
    if not configuration:
        return ""
    for name, text in configuration.pop("programs").items():
        save(name, text)
    save("overlay.json", json.dumps(configuration))
    subprocess.run([sys.executable, os.path.join(STATE, "stockyard_overlay.py"), "enter"], check=True)  # noqa: S603
    return str(configuration["address"])


def boot_step(arguments: list[str]) -> dict[str, Any]:
    """A step that begins; with its exit code and the path of the log, one that has failed and its last lines."""
    step: dict[str, Any] = {"step": arguments[0]}
    if len(arguments) > 1:
        with open(arguments[2], errors="replace") as file:
            step.update(exit=int(arguments[1]), lines=file.read()[-4000:])
    return step
