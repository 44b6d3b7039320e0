"""Machines of a control plane on one computer: each has namespaces, a network address and a disk of its own.

What a machine is told at its first boot is written to its disk and run as it is, with the paths and ports of a machine.
Only what a machine brings itself is played: systemd, the container runtime and the kubelet. The load balancer does not
send a machine's own connections back to it.
"""

from __future__ import annotations

import array
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.children import start
from local.kubernetes.real.build import BINARIES
from stockyard.machines.cloud_config import FirstBoot

GATEWAY, NETWORK = "10.99.0.254", "10.99.0."
NAME = "api.members.test"
SECONDS = 240.0
_HOLDER = f"""
set -e
mount -t tmpfs tmpfs "$1/disks"
ip link set lo up
ip link add town type bridge
ip addr add {GATEWAY}/24 dev town
ip link set town up
touch "$1/ready"
exec sleep infinity
"""
_SYSTEMCTL = """#!/bin/bash
state=/var/lib/stockyard-kubelet
case "$*" in
    "start kubelet" | "restart kubelet") echo running >"$state" ;;
    "stop kubelet") echo stopped >"$state" ;;
esac
exit 0
"""
_CRICTL = """#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != ps ] && [ "$1" != exec ]; do shift; done
[ "$1" = ps ] && echo the-container && exit 0
[ "$1" = exec ] && shift 2 && exec "$@"
exit 0
"""
_CTR = """#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != etcdutl ]; do shift; done
exec "$@"
"""
_KUBEADM = """#!/bin/bash
# A machine of the tests has no container runtime, and not the memory that kubeadm asks for.
more=()
case "$1 $2" in
    "init phase" | "join phase") ;;
    init* | join*) more=(--ignore-preflight-errors=all --skip-phases=preflight) ;;
esac
exec PROGRAM "$@" "${more[@]}"
"""
_PYTHON = """#!/bin/bash
case "$1 $2" in "-c "*urlopen*) exec cp FOLDER/network.yaml "$4" ;; esac
exec PYTHON "$@"
"""
NETWORK_MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: network, namespace: kube-system}\n"


def missing() -> str:
    """Reason why no machines can be made here; empty when they can."""
    absent = [name for name in ("ip", "nsenter", "unshare", "mount") if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed"
    probe = "mount -t tmpfs tmpfs /mnt && ip link add town type bridge && ip link add wire type veth peer name end"
    done = subprocess.run([*_unshare("--net"), "sh", "-c", probe], capture_output=True, text=True, check=False)
    return f"no namespaces of machines: {done.stderr.strip()}" if done.returncode else ""


def _unshare(*more: str) -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", *more]


@dataclass
class Machine:
    """A machine that is on. ``pid`` is of its first process."""

    name: str
    address: str
    release: str
    pid: int
    process: subprocess.Popen[bytes]


class Town:
    """``folder`` takes the machines' logs; ``environment`` is of the start scripts. Use it as a context."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.machines = folder, dict[str, Machine]()
        self.environment: dict[str, str] = {}
        (folder / "disks").mkdir(parents=True)
        (folder / "network.yaml").write_text(NETWORK_MANIFEST)
        command = [*_unshare("--net"), "sh", "-c", _HOLDER, "sh", str(folder)]
        self._processes = [start(command)]
        until((folder / "ready").exists, "the town", 20)
        self._holder = _last_child(self._processes[0].pid)
        self._start([sys.executable, "-m", "tests.kubernetes.members.balancer", GATEWAY, str(folder / "targets")])

    def __enter__(self) -> Town:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def listener(self, port: int) -> socket.socket:
        """A socket that listens in the town."""
        here, there = socket.socketpair()
        program = (
            "import array, socket, sys; s = socket.create_server((sys.argv[1], int(sys.argv[2])));"
            "socket.send_fds(socket.socket(fileno=int(sys.argv[3])), [b'x'], [s.fileno()])"
        )
        arguments = [GATEWAY, str(port), str(there.fileno())]
        command = [*self._inside(), sys.executable, "-c", program, *arguments]
        subprocess.run(command, check=True, pass_fds=[there.fileno()])
        _, descriptors, _, _ = socket.recv_fds(here, 1, array.array("i").itemsize)
        here.close()
        there.close()
        return socket.socket(fileno=descriptors[0])

    def boot(self, name: str, number: int, boot: FirstBoot, kubernetes: str) -> Machine:
        """Switch a machine on; its disk is new unless it was on before."""
        folder, address = self.folder / name, f"{NETWORK}{number}"
        folder.mkdir(exist_ok=True)
        config = {
            "name": name,
            "address": address,
            "gateway": GATEWAY,
            "release": kubernetes,
            "arguments": boot.arguments,
            "environment": self.environment,
            "programs": str(self._programs(kubernetes)),
            "binaries": str(BINARIES),
            "files": {path: [file.text, file.mode] for path, file in boot.files.items()},
        }
        (folder / "machine.json").write_text(json.dumps(config))
        own = ["--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        program = [sys.executable, "-m", "tests.kubernetes.members.machine", str(folder), str(self.folder / "disks")]
        process = self._start(["unshare", *own, *program], folder / "machine.log")
        pid = until(lambda: _first_process(process.pid), f"the machine {name}", 20)
        wire = f"w{number}"
        inside = _number_in_town(pid)
        self._run("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", inside)
        self._run("ip", "link", "set", wire, "master", "town", "up")
        self.machines[name] = Machine(name, address, kubernetes, pid, process)
        return self.machines[name]

    def kill(self, name: str) -> None:
        """The machine has no power any more."""
        machine = self.machines.pop(name)
        os.kill(machine.pid, 9)
        machine.process.wait()

    def targets(self, *names: str) -> None:
        """Set the machines that the load balancer sends connections to."""
        text = "\n".join(self.machines[name].address for name in names)
        (self.folder / "targets.part").write_text(text)
        (self.folder / "targets.part").rename(self.folder / "targets")

    def run(self, name: str, *command: str, check: bool = True, input: str | None = None) -> str:
        """Run a command on the machine with the administrator's kubeconfig, and return its output."""
        machine = self.machines[name]
        environment = {
            "PATH": f"{self._programs(machine.release)}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "KUBECONFIG": "/etc/kubernetes/admin.conf",
        }
        enter = ["nsenter", "--target", str(machine.pid), *_user(), "--mount", "--net", "--uts", "--pid"]
        done = subprocess.run(
            [*enter, *command], env=environment, capture_output=True, text=True, check=False, input=input, timeout=120
        )
        if check and done.returncode:
            fault = f"{' '.join(command)[:200]} ended with {done.returncode}"
            raise AssertionError(f"{name}: {fault}: {done.stderr[-2000:]}")
        return done.stdout

    def take_volume(self, name: str, other: str, kubernetes: str) -> None:
        """A new machine of a release gets the volume of another, whose etcd is that of the last snapshot:
        ``docs/restore.md``."""
        source, target = (self.folder / "disks" / each / "volume" for each in (name, other))
        restore = (
            'mkdir -p "$2" && cp -a "$1/keys" "$1/snapshots" "$2" &&'
            ' snapshot="$(ls "$2"/snapshots/*.db | tail -n 1)" && exec "$3" snapshot restore "$snapshot"'
            ' --data-dir "$2/etcd" --bump-revision 1000000000 --mark-compacted'
        )
        self._run("sh", "-c", restore, "sh", str(source), str(target), str(BINARIES / kubernetes / "etcdutl"))

    def log(self, name: str) -> str:
        """Output of the machine."""
        return (self.folder / name / "machine.log").read_text(errors="replace")

    def _programs(self, kubernetes: str) -> Path:
        folder = self.folder / f"programs-{kubernetes}"
        if folder.exists():
            return folder
        folder.mkdir()
        scripts = {
            "systemctl": _SYSTEMCTL,
            "crictl": _CRICTL,
            "ctr": _CTR,
            "python3": _PYTHON.replace("FOLDER", str(self.folder)).replace("PYTHON", sys.executable),
            "kubeadm": _KUBEADM.replace("PROGRAM", str(BINARIES / kubernetes / "kubeadm")),
            "mountpoint": "#!/bin/sh\nexit 0\n",
        }
        for name, text in scripts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        for name in ("etcdctl", "etcdutl", "kubectl"):
            (folder / name).symlink_to(BINARIES / kubernetes / name)
        return folder

    def _inside(self) -> list[str]:
        return ["nsenter", "--target", str(self._holder), *_user(), "--mount", "--net", "--pid"]

    def _start(self, command: list[str], log: Path | None = None) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with (log or self.folder / "town.log").open("ab") as out:
            process = start([*self._inside(), *command], stdout=out, stderr=out, env=environment)
        self._processes.append(process)
        return process

    def _run(self, *command: str) -> None:
        subprocess.run([*self._inside(), *command], check=True, capture_output=True)


def until(condition: Callable[[], Any], thing: str, seconds: float = SECONDS) -> Any:
    """Wait until the condition's answer is true, and return it."""
    ends_at = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < ends_at, f"{thing} never came to be"
        time.sleep(0.2)
    return answer


def _user() -> list[str]:
    return [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]


def _last_child(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return _last_child(int(children[0])) if children else pid


def _first_process(pid: int) -> int:
    """The process of a machine's program below ``pid``; 0 while there is none."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"tests.kubernetes.members.machine" in command and command[0] == sys.executable.encode():
            return pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return 0
    return _first_process(int(children[0])) if children else 0


def _number_in_town(pid: int) -> str:
    """The number by which the town knows a machine's first process."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return line.split()[-2]
