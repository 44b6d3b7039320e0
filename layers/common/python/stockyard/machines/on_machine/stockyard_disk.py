"""Runs on a machine whose data disk is encrypted: gets the machine's own secret id, and opens the disk with its key.

The key is in the tenant's Vault. On the machine it is only in memory: cryptsetup reads it from its standard input.
Standard library only.
"""

from __future__ import annotations

import base64
import fcntl
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stockyard_machine as machine  # type: ignore[import-not-found]

CONFIG = os.environ.get("STOCKYARD_VAULT", "/etc/stockyard/vault.json")
STATE = os.environ.get("STOCKYARD_STATE", "/etc/stockyard")
MAPPED = os.environ.get("STOCKYARD_MAPPED", "/dev/mapper/stockyard-data")
SECRET_ID, DISK = "vault-secret-id", "data-disk"
ATTEMPTS = 10
LUKS = "crypto_LUKS"
# The key is random and long: it needs no slow derivation, which costs memory and time.
FORMAT = ["--batch-mode", "--cipher", "aes-xts-plain64", "--key-size", "512"]
FORMAT += ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"]


class Unmoved(urllib.request.HTTPRedirectHandler):
    # Whoever is redirected would show its token to another host.
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def call(vault: dict[str, str], path: str, token: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Status and document of an answer. Raises ``OSError`` where the Vault cannot answer now."""
    url, headers = vault["address"] + "/v1/" + path, {"Content-Type": "application/json"}
    if token:
        headers["X-Vault-Token"] = token
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310
    try:
        with urllib.request.build_opener(Unmoved).open(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read(1 << 20) or b"{}")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 429 or error.code >= 472:
            raise OSError(f"the Vault answers {error.code}") from None
        return error.code, {}
    except http.client.HTTPException as error:
        raise OSError(type(error).__name__) from None


def read(name: str) -> str:
    """The text of a file of this program's; empty when there is none."""
    try:
        with open(os.path.join(STATE, name)) as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def keep(name: str, text: str) -> None:
    """Write a file that only root can read. After a crash at any moment there is all of it or nothing."""
    path = os.path.join(STATE, name)
    part = path + ".part"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def unwrap(vault: dict[str, str]) -> None:
    """Get the machine's own secret id, once, and keep it. ``SystemExit`` where somebody else may have it."""
    if read(SECRET_ID):
        return
    status, answer = machine.patiently(
        lambda: call(vault, "sys/wrapping/unwrap", vault["wrapped_secret_id"], {}), ATTEMPTS
    )
    if status != 200:
        raise SystemExit(
            f"The Vault does not unwrap this machine's secret id ({status}): it is older than 30 minutes, or was "
            "unwrapped before, by an earlier boot or by somebody else. Replace this machine, and remove that secret id."
        )
    keep(SECRET_ID, answer["data"]["secret_id"])


def login(vault: dict[str, str]) -> str:
    """A token for this machine."""
    body = {"role_id": vault["role_id"], "secret_id": read(SECRET_ID)}
    status, answer = call(vault, "auth/approle/login", "", body)
    if status != 200:
        raise SystemExit(f"The Vault refuses this machine's login ({status}): was its secret id removed there?")
    return str(answer["auth"]["client_token"])


def disk_key(vault: dict[str, str], may_make: bool) -> str:
    """The key of the disk. With ``may_make`` one is made where there is none: two who make one end with the same."""
    token, path = login(vault), "secret/data/stockyard/" + vault["client_id"]
    status, answer = call(vault, path, token)
    if status == 404 and may_make:
        key = base64.b64encode(os.urandom(64)).decode()
        status, _ = call(vault, path, token, {"options": {"cas": 0}, "data": {"key": key}})
        # 400: there is a version already, perhaps a deleted one.
        if status in (200, 400):
            status, answer = call(vault, path, token)
    if status == 404:
        raise SystemExit("The Vault has no key for this disk: what is on it cannot be read.")
    if status != 200:
        raise SystemExit(f"The Vault refuses this machine the key of its disk ({status}): is the role's policy there?")
    return str(answer["data"]["data"]["key"])


def output(*command: str) -> str:
    """Output of a command."""
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout  # noqa: S603


def with_key(key: str, *command: str) -> None:
    """Run cryptsetup, which reads the key from its standard input."""
    subprocess.run(["cryptsetup", *command], input=key.encode(), check=True)  # noqa: S603, S607


def is_empty(disk: str) -> bool:
    """Whether there is nothing on the disk; ``SystemExit`` where there is something that is not encrypted."""
    content = set(output("wipefs", "--noheadings", "--output", "TYPE", disk).split())
    if content - {LUKS}:
        raise SystemExit(f"The disk {disk} is not encrypted and not empty ({content}): it is left as it is.")
    # A format that was cut off leaves a header without a key: nothing can have been written with it.
    return not content or not json.loads(output("cryptsetup", "luksDump", "--dump-json-metadata", disk))["keyslots"]


def open_disk(vault: dict[str, str], disk: str, may_format: bool) -> None:
    """Open the disk as ``MAPPED``, and with ``may_format`` make it an encrypted one first if it is empty."""
    with open(CONFIG) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(MAPPED):
            return
        empty = is_empty(disk)
        if empty and not may_format:
            raise SystemExit(f"The disk {disk} has lost its header: it cannot be opened.")
        key = disk_key(vault, may_make=empty)
        if empty:
            with_key(key, "luksFormat", "--type", "luks2", *FORMAT, "--key-file", "-", disk)
        keep(DISK, "/dev/disk/by-uuid/" + output("cryptsetup", "luksUUID", disk).strip())
        with_key(key, "open", "--type", "luks2", "--key-file", "-", disk, os.path.basename(MAPPED))
        if empty:
            # What was never written reads as noise, which may look like a file system.
            output("wipefs", "--all", MAPPED)


def open_again(vault: dict[str, str], pause: Callable[[float], None] = time.sleep) -> None:
    """Open the disk after a reboot, however long the Vault is away or refuses."""
    seconds = 5
    while True:
        try:
            return open_disk(vault, read(DISK), may_format=False)
        except (OSError, ValueError, KeyError, SystemExit, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"the data disk is not open yet: {error}\n")
        pause(seconds)
        seconds = min(60, 2 * seconds)


def main(arguments: list[str]) -> None:
    """``unwrap``; ``open`` and a disk, at the first boot; ``open`` alone, at any later one."""
    with open(CONFIG) as file:
        vault = json.load(file)
    if arguments[0] == "unwrap":
        unwrap(vault)
    elif len(arguments) > 1:
        open_disk(vault, arguments[1], may_format=True)
    else:
        open_again(vault)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
