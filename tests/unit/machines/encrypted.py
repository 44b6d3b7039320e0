"""A machine with an encrypted data disk, below a folder: the program as it arrives, and a played cryptsetup."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from local.vault.server import Vault, app_role, ask
from stockyard.machines import control_plane, data_disk
from stockyard.machines.data_disk import DiskKey
from tests.unit.machines.first_boot import VALUES

CLIENT_ID = "acme-0123456789ab"
KEY = f"secret/data/stockyard/{CLIENT_ID}"
PLAYED = r"""#!/bin/bash
# A disk is a file: empty, "LUKS <hash of the key>", "LUKS none" without a key, or anything else.
disk="$ROOT/disk" name="${0##*/}"
case "$name $*" in
    *--key-file*) input="$(cat)" ;;
esac
{ printf '%s' "$name $*" | tr '\n' ' '; echo; } >>"$ROOT/calls"
env >>"$ROOT/environments"
hash="$(printf '%s' "$input" | sha256sum | cut -d' ' -f1)"
case "$name $1" in
    "wipefs --noheadings")
        case "$(head -c4 "$disk")" in LUKS) printf 'crypto_LUKS\n%.0s' 1 2 ;; ?*) echo ext4 ;; esac ;;
    "cryptsetup luksFormat") echo "LUKS $hash" >"$disk" ;;
    "cryptsetup luksDump")
        if grep -q none "$disk"; then echo '{"keyslots": {}}'; else echo '{"keyslots": {"0": {}}}'; fi ;;
    "cryptsetup luksUUID") echo 0fc63daf ;;
    "cryptsetup open") grep -q "$hash" "$disk" || exit 2; echo noise >"$MAPPED" ;;
esac
"""

ON_A_FILE = """#!/bin/bash
# To map a file takes a device mapper. Whether the key opens it can be asked without one.
if test "$1" = open; then
    "$REAL" open --test-passphrase "${@:2:$#-2}" && touch "$MAPPED"
    exit
fi
exec "$REAL" "$@"
"""
PROGRAMS = {name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in ("cryptsetup", "wipefs")}


class Machine:
    """A machine's boot disk and data disk below a folder, and the program with the files that it was told."""

    def __init__(self, root: Path, vault: Vault, role_id: str, wrapped_secret_id: str) -> None:
        self.root, self.disk, self.mapped = root, root / "disk", root / "mapper" / "stockyard-data"
        self.state = root / "etc"
        for folder in (self.state, root / "bin", self.mapped.parent):
            folder.mkdir(parents=True)
        self.disk.touch()
        key = DiskKey(vault.url, role_id, wrapped_secret_id, CLIENT_ID)
        (self.state / "vault.json").write_text(data_disk.files(key)[data_disk.CONFIG_PATH].text)
        for name in ("cryptsetup", "wipefs"):
            (root / "bin" / name).write_text(PLAYED)
            (root / "bin" / name).chmod(0o755)
        self.environment = {
            "PATH": f"{root}/bin:/usr/bin:/bin",
            "ROOT": str(root),
            "MAPPED": str(self.mapped),
            "STOCKYARD_VAULT": str(self.state / "vault.json"),
            "STOCKYARD_STATE": str(self.state),
            "STOCKYARD_MAPPED": str(self.mapped),
        }
        self.program = root / "program" / "stockyard_disk.py"
        files = control_plane.ControlPlaneMachine(**VALUES, disk_key=key).first_boot().files
        self.program.parent.mkdir()
        self.program.write_text(files[data_disk.PROGRAM_PATH].text)
        (self.program.parent / "stockyard_machine.py").write_text(files[control_plane.SCRIPT_PATH].text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The program as the boot runs it."""
        command = [sys.executable, "-S", str(self.program), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def boot(self) -> None:
        """A first boot's two steps."""
        for arguments in (("unwrap",), ("open", str(self.disk))):
            done = self.run(*arguments)
            assert done.returncode == 0, done.stderr

    def calls(self, name: str) -> list[str]:
        """Runs of a command of cryptsetup."""
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(f"cryptsetup {name}")]

    def opens_with(self, key: str) -> bool:
        return hashlib.sha256(key.encode()).hexdigest() in self.disk.read_text()


def wrapped(vault: Vault) -> str:
    path = "auth/approle/role/stockyard/secret-id"
    return ask(vault, "POST", path, {"num_uses": 0, "ttl": 0}, wrap_seconds=1800)[1]["wrap_info"]["token"]


def key_of(vault: Vault) -> str:
    return ask(vault, "GET", KEY)[1]["data"]["data"]["key"]


def new_machine(root: Path, vault: Vault) -> Machine:
    return Machine(root, vault, app_role(vault)[0], wrapped(vault))
