"""Machines in network namespaces, with the programs that real machines run: behind one internet, some behind NATs.

Needs root, ``/dev/net/tun`` and the packages wireguard-go, wireguard-tools, iproute2, nftables; see ``lacking``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "layers/common/python/stockyard/machines/on_machine/stockyard_overlay.py"
TOOLS = ("wireguard-go", "wg", "wg-quick", "ip", "nft", "openssl", "ping")
INTERNET = "203.0.113"
LIST_AT = f"{INTERNET}.1"
RANGE = "100.64.0.0/16"
PORT = 51820
MARK = "sy"


def lacking() -> str | None:
    """Reason why there can be no namespaces here; None where there can."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} are not installed"
    name = f"{MARK}{os.getpid()}-probe"
    probe = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return None if probe.returncode == 0 else "network namespaces are not allowed here"


def run(*command: str, text: str | None = None, check: bool = True) -> str:
    """Output of a command."""
    return subprocess.run(command, input=text, check=check, capture_output=True, text=True).stdout


def remove_abandoned() -> None:
    """Remove namespaces of processes that were killed before they could."""
    for line in run("ip", "netns", "list").splitlines():
        space = line.split()[0]
        number = space.removeprefix(MARK).partition("-")[0]
        if space.startswith(MARK) and number.isdecimal() and not Path(f"/proc/{number}").exists():
            for child in run("ip", "netns", "pids", space, check=False).split():
                subprocess.run(["kill", "-9", child], check=False)
            run("ip", "netns", "delete", space, check=False)


@dataclass
class Machine:
    """One machine: its namespace, its folder of state, its address in the overlay."""

    name: str
    space: str
    folder: Path
    address: str
    key: str
    hub: bool = False
    endpoints: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def interface(self) -> str:
        """Name of the interface; names differ, since the sockets of all userspace interfaces lie in one folder."""
        return self.space

    def entry(self) -> dict[str, Any]:
        """The machine as a row of the list."""
        return {"address": self.address, "key": self.key, "hub": self.hub, "endpoints": list(self.endpoints)}


@dataclass
class Networks:
    """An internet with machines. ``tick`` are the seconds between two probes of the programs."""

    folder: Path
    tick: float = 1.0
    mark: str = field(default_factory=lambda: f"{MARK}{os.getpid()}")
    """What all names begin with: another process has others."""
    machines: dict[str, Machine] = field(default_factory=dict)
    spaces: list[str] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    hosts: int = 1
    version: int = 0

    def __post_init__(self) -> None:
        remove_abandoned()
        self.space("net")
        self.inside("net", "ip", "link", "add", "wire", "type", "bridge")
        self.inside("net", "ip", "address", "add", f"{LIST_AT}/24", "dev", "wire")
        self.inside("net", "ip", "link", "set", "wire", "up")
        run(
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(self.folder / "key.pem"), "-out", str(self.folder / "ca.pem"), "-days", "2"),
            *("-subj", "/CN=list", "-addext", f"subjectAltName=IP:{LIST_AT}"),
        )
        self.publish()
        files = [str(self.folder / name) for name in ("list.json", "ca.pem", "key.pem")]
        self.start("net", [sys.executable, "-m", "tests.harness.list_server", *files, "6443"])

    # --- the parts ----------------------------------------------------------------------------------------------------

    def space(self, name: str) -> str:
        """A new namespace."""
        space = f"{self.mark}-{name}"
        run("ip", "netns", "delete", space, check=False)
        run("ip", "netns", "add", space)
        self.spaces.append(space)
        self.inside(name, "ip", "link", "set", "lo", "up")
        return space

    def inside(self, name: str, *command: str, text: str | None = None, check: bool = True) -> str:
        """Output of a command in a namespace."""
        return run("ip", "netns", "exec", f"{self.mark}-{name}", *command, text=text, check=check)

    def start(self, name: str, command: list[str], **settings: str) -> subprocess.Popen[bytes]:
        """Start a program in a namespace."""
        environment = {**os.environ, **settings}
        whole = ["ip", "netns", "exec", f"{self.mark}-{name}", *command]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(whole, cwd=ROOT, env=environment, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def wire(self, name: str, to: str, address: str, gateway: str | None, device: str = "eth0") -> None:
        """Plug a namespace into the bridge ``wire`` of another one."""
        outer = f"v{len(self.spaces)}{name}"[:15]
        self.inside(name, "ip", "link", "add", device, "type", "veth", "peer", "name", outer)
        self.inside(name, "ip", "link", "set", outer, "netns", f"{self.mark}-{to}")
        self.inside(to, "ip", "link", "set", outer, "master", "wire", "up")
        self.inside(name, "ip", "address", "add", f"{address}/24", "dev", device)
        self.inside(name, "ip", "link", "set", device, "up")
        if gateway:
            self.inside(name, "ip", "route", "add", "default", "via", gateway)

    def public_address(self) -> str:
        """The next address of the internet."""
        self.hosts += 1
        return f"{INTERNET}.{self.hosts}"

    def nat(self, name: str, *, symmetric: bool = False) -> str:
        """A router that lets out and lets in only answers; a symmetric one has another port for each peer. Behind each
        is the same private range."""
        self.space(name)
        address = self.public_address()
        self.wire(name, "net", address, None, "wan")
        self.inside(name, "ip", "link", "add", "wire", "type", "bridge")
        self.inside(name, "ip", "address", "add", "10.10.0.1/24", "dev", "wire")
        self.inside(name, "ip", "link", "set", "wire", "up")
        self.inside(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        how = "masquerade random,fully-random" if symmetric else "masquerade"
        rules = f"""table ip nat {{
  chain out {{ type nat hook postrouting priority 100; oifname "wan" {how}; }}
}}
table ip filter {{
  chain cut {{ type filter hook forward priority -10; }}
  chain through {{ type filter hook forward priority 0; policy drop;
    iifname "wire" accept; ct state established,related accept; }}
  chain here {{ type filter hook input priority 0; policy drop; iifname "wire" accept;
    ct state established,related accept; }}
}}"""
        self.inside(name, "nft", "-f", "-", text=rules)
        return address

    def machine(self, name: str, *, behind: str | None = None, hub: bool = False, number: int = 0) -> Machine:
        """A machine that is in the list, and not started. ``behind`` a NAT, else with a public address."""
        space = self.space(name)
        if behind is None:
            address = self.public_address()
            self.wire(name, "net", address, None)
        else:
            address = f"10.10.0.{10 + number}"
            self.wire(name, behind, address, "10.10.0.1")
        if hub:
            self.inside(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        folder = self.folder / name
        folder.mkdir()
        secret = run("wg", "genkey").strip()
        (folder / "overlay.key").write_text(secret + "\n")
        key = run("wg", "pubkey", text=secret).strip()
        run(
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(folder / "client.key"), "-out", str(folder / "kubelet.pem"), "-days", "2"),
            *("-subj", f"/O=system:nodes/CN=system:node:{name}"),
        )
        with (folder / "kubelet.pem").open("a") as file:
            file.write((folder / "client.key").read_text())
        where = {"host": LIST_AT, "port": 6443}
        (folder / "endpoint.json").write_text(json.dumps(where))
        own = f"100.64.0.{len(self.machines) + 1}"
        endpoints = (f"{address}:{PORT}",) if hub else ()
        self.machines[name] = Machine(name, space, folder, own, key, hub, endpoints)
        return self.machines[name]

    # --- the list and the programs ------------------------------------------------------------------------------------

    def publish(self, without: str | None = None) -> None:
        """Write the list of machines as the agent does."""
        self.version += 1
        rows = [machine.entry() for machine in self.machines.values() if machine.name != without]
        data = {"version": str(self.version), "peers": json.dumps(rows)}
        path = self.folder / "list.json"
        path.with_suffix(".new").write_text(json.dumps({"data": data}))
        path.with_suffix(".new").replace(path)

    def boot(self, name: str, **settings: str) -> None:
        """Start the machine's program, as its unit does: output of the hubs."""
        machine = self.machines[name]
        hubs = [other.entry() for other in self.machines.values() if other.hub and other.name != name]
        own = {"address": machine.address, "range": RANGE, "hub": machine.hub, "peers": hubs}
        path = machine.folder / "overlay.json"
        if not path.exists():
            path.write_text(json.dumps(own))
        machine.process = self.start(name, [sys.executable, str(PROGRAM)], **self.settings(machine), **settings)

    def settings(self, machine: Machine) -> dict[str, str]:
        """Variables of the machine's programs, by which all of it is its own."""
        return {
            "STOCKYARD_STATE": str(machine.folder),
            "STOCKYARD_AUTHORITY": str(self.folder / "ca.pem"),
            "STOCKYARD_KUBELET": str(machine.folder / "kubelet.pem"),
            "STOCKYARD_OVERLAY_STATUS": str(machine.folder / "status.json"),
            "STOCKYARD_OVERLAY_INTERFACE": machine.interface,
            "STOCKYARD_OVERLAY_TICK": str(self.tick),
            "STOCKYARD_OVERLAY_SLOT": str(24 * self.tick),
        }

    def stop(self, name: str) -> None:
        """The machine dies: its program, and its tunnel with it."""
        process = self.machines[name].process
        if process is not None:
            for child in run("ip", "netns", "pids", f"{self.mark}-{name}", check=False).split():
                subprocess.run(["kill", "-9", child], check=False)
            process.wait()

    # --- looks --------------------------------------------------------------------------------------------------------

    def status(self, name: str) -> Mapping[str, Any]:
        """The paths as the machine's program has them; empty before the first."""
        path = self.machines[name].folder / "status.json"
        content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return content

    def annotation(self, name: str) -> str | None:
        """Annotation of the machine's Node about its paths; None before the first."""
        path = self.folder / "nodes" / name
        if not path.exists():
            return None
        text: str = json.loads(path.read_text())["metadata"]["annotations"]["stockyard.dev/overlay"]
        return text

    def path(self, a: str, b: str) -> str:
        """Kind of the path from ``a`` to ``b``: ``hub``, ``direct``, ``relayed``; empty for not at all."""
        return str(self.status(a).get("peers", {}).get(self.machines[b].address, ""))

    def pings(self, a: str, b: str, count: int = 1, interval: float = 0.2) -> int:
        """Number of these pings over the overlay that are answered."""
        output = self.inside(
            *(a, "ping", "-n", "-q", "-c", str(count), "-i", str(interval), "-W", "1", self.machines[b].address),
            check=False,
        )
        return int(output.split(" received")[0].rpartition(" ")[2]) if " received" in output else 0

    def carried(self, hub: str) -> int:
        """Bytes that the hub's interface has received and sent."""
        output = self.inside(hub, "ip", "-s", "-j", "link", "show", self.machines[hub].interface)
        stats = json.loads(output)[0]["stats64"]
        return int(stats["rx"]["bytes"]) + int(stats["tx"]["bytes"])

    def send(self, a: str, b: str, size: int) -> float:
        """Send bytes over TCP from ``a`` to ``b``. The seconds that it took; every byte has arrived."""
        receiver = (
            "import socket\ns = socket.create_server(('0.0.0.0', 9000))\nc, _ = s.accept()\nn = 0\n"
            "while d := c.recv(1 << 16):\n    n += len(d)\nprint(n)"
        )
        sender = (
            "import socket, time\nfor _ in range(100):\n    try:\n"
            f"        s = socket.create_connection(('{self.machines[b].address}', 9000), 5)\n        break\n"
            f"    except OSError:\n        time.sleep(0.1)\ns.sendall(bytes({size}))\ns.close()"
        )
        start = time.monotonic()
        spaces = ["ip", "netns", "exec"]
        with subprocess.Popen(
            [*spaces, f"{self.mark}-{b}", sys.executable, "-c", receiver], stdout=subprocess.PIPE, text=True
        ) as there:
            self.inside(a, sys.executable, "-c", sender)
            output, _ = there.communicate(timeout=60)
        assert int(output) == size
        return time.monotonic() - start

    def cpu_seconds(self) -> float:
        """CPU of all programs that run, and of what they have waited for."""
        ticks = 0
        for space in self.spaces:
            for child in run("ip", "netns", "pids", space, check=False).split():
                with suppress(OSError):
                    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                    ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def cut(self, nat: str, peer: str) -> None:
        """Let nothing pass between those behind the NAT and an address of the internet."""
        for way in ("daddr", "saddr"):
            self.inside(nat, "nft", "add", "rule", "ip", "filter", "cut", "ip", way, peer, "drop")

    def mend(self, nat: str) -> None:
        """Let everything pass again."""
        self.inside(nat, "nft", "flush", "chain", "ip", "filter", "cut")

    def end(self) -> None:
        """Remove everything."""
        for space in self.spaces:
            for child in run("ip", "netns", "pids", space, check=False).split():
                subprocess.run(["kill", "-9", child], check=False)
        for process in self.processes:
            process.kill()
            process.wait()
        for space in self.spaces:
            run("ip", "netns", "delete", space, check=False)


def until(look: Callable[[], object], seconds: float, words: str) -> float:
    """Wait until something is so. The seconds that it took; ``AssertionError`` when it took too long."""
    start = time.monotonic()
    while not look():
        assert time.monotonic() - start < seconds, f"after {seconds} s not: {words}"
        time.sleep(0.1)
    return time.monotonic() - start
