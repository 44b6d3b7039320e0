"""The first process of a machine of the tests: its disk, its network, its start script, and what plays its kubelet.

    python -m tests.kubernetes.members.machine <folder of the machine> <folder of the disks>

It runs in namespaces of its own. ``machine.json`` in the folder says what its cloud would tell: the files of the first
boot, the arguments of the start script, name and address. The disk stays when the machine is switched off.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.kubernetes.members.played_kubelet import STATE, Kubelet

OVERLAID = ("etc", "var", "usr/local")
VOLUME = Path("/var/lib/control-plane")
REPORTED = Path("/var/lib/stockyard/reported")
RESTART_SECONDS = 2.0
"""What is 30 s on a machine: ``RestartSec`` of the unit."""


def run(*command: str) -> None:
    """Run it, or fail."""
    subprocess.run(command, check=True)


def mount_disk(disk: Path) -> bool:
    """Let the machine write below its own root. Whether the disk is new."""
    is_new = not (disk / "etc").exists()
    for name in OVERLAID:
        upper, work = disk / name, disk / f".{name.replace('/', '-')}"
        upper.mkdir(parents=True, exist_ok=True)
        work.mkdir(exist_ok=True)
        options = f"lowerdir=/{name},upperdir={upper},workdir={work}"
        run("mount", "-t", "overlay", "overlay", "-o", options, f"/{name}")
    # The volume of etcd is another disk.
    for path in (disk / "volume", VOLUME):
        path.mkdir(parents=True, exist_ok=True)
    run("mount", "--bind", str(disk / "volume"), str(VOLUME))
    return is_new


def connect(address: str, gateway: str) -> None:
    """Configure the wire that the town lays to the machine."""
    while subprocess.run(("ip", "link", "show", "eth0"), capture_output=True, check=False).returncode:
        time.sleep(0.05)
    run("ip", "link", "set", "lo", "up")
    run("ip", "addr", "add", f"{address}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    run("ip", "route", "add", "default", "via", gateway)


def write(config: dict[str, Any]) -> None:
    """Write the files that cloud-init and an image would have written."""
    for path, (text, mode) in config["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text.removesuffix("\n") + "\n")
        Path(path).chmod(int(mode, 8))
    Path("/etc/hosts").write_text("127.0.0.1 localhost\n")
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").write_text(f"nameserver {config['gateway']}\n")
    Path("/etc/nsswitch.conf").write_text("hosts: files dns\n")
    Path("/var/lib/cloud/instance").mkdir(parents=True, exist_ok=True)
    Path("/var/lib/cloud/instance/user-data.txt").touch()
    # The packages are there.
    Path("/etc/containerd").mkdir(exist_ok=True)
    Path("/etc/containerd/prepared").touch()


def start(config: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start the command of the unit of the first boot."""
    environment = {"PATH": f"{config['programs']}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
    environment |= config["environment"]
    command = ["bash", "/usr/local/lib/stockyard/start.sh", *str(config["arguments"]).split()]
    return subprocess.Popen(command, env=environment)


def main(folder: Path, disks: Path) -> None:
    """Run until somebody ends it."""
    config = json.loads((folder / "machine.json").read_text())
    socket.sethostname(config["name"])
    if mount_disk(disks / config["name"]):
        write(config)
    connect(config["address"], config["gateway"])
    kubelet = Kubelet(Path(config["binaries"]), config["release"], folder)
    script, ended_at = None, 0.0
    while True:
        if script is not None and script.poll() is not None:
            if script.returncode == 0:
                REPORTED.parent.mkdir(parents=True, exist_ok=True)
                REPORTED.touch()
            script, ended_at = None, time.monotonic()
        if script is None and not REPORTED.exists() and time.monotonic() - ended_at > RESTART_SECONDS:
            script = start(config)
        kubelet.step()
        time.sleep(0.3)


if __name__ == "__main__":
    STATE.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.reconfigure(line_buffering=True)
    os.chdir("/")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
