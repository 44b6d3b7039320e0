"""Runs on each machine of a cluster with an overlay: keeps its WireGuard interface, and where each packet goes.

A machine sends through its home, a hub, and directly to whom it has heard on the direct path within seconds. Each
address has a second one of the upper half of the range that stands for the direct path alone: on it machines probe each
other, whichever way packets take meanwhile. Both ends of a path change within one message, since WireGuard takes an
address from one peer only. Hubs say which endpoints they see; keys and addresses come from the cluster's list, which is
Stockyard's. Standard library only.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stockyard_overlay_peers as peers  # type: ignore[import-not-found]
import stockyard_overlay_report  # type: ignore[import-not-found]

INTERFACE = os.environ.get("STOCKYARD_OVERLAY_INTERFACE", "stockyard0")
TICK = peers.TICK
DEAD = 3.2 * TICK
# Both ends of a path that is not there try it in the same seconds, by the clock.
SLOT = float(os.environ.get("STOCKYARD_OVERLAY_SLOT", "120"))
WINDOW = 6 * TICK
EAGER = 12 * TICK
LOOK = 3 * TICK
REFRESH = 60 * TICK
PORT, PROBE_PORT, MTU = 51820, 51821, 1420
PAGE = 30
LONGEST = 60_000


class Overlay:
    """The overlay as this machine has it. ``own``: what the machine was told when it joined."""

    def __init__(self, own: dict[str, Any]) -> None:
        self.interface = INTERFACE
        self.network = ipaddress.ip_network(own["range"])
        lower, upper = self.network.subnets(1)
        self.lower, self.upper = lower, upper
        self.address, self.hub = str(own["address"]), bool(own.get("hub"))
        self.port = int(own.get("port") or PORT)
        self.peers: dict[str, peers.Peer] = {}
        self.by_probe: dict[str, peers.Peer] = {}
        self.home = ""
        self.written: dict[str, tuple[str, ...]] = {}
        self.version = self.wanted = self.seen_version = ""
        self.cursor = 0
        self.looked = float("-inf")
        self.own_endpoint = ""
        self.take(own["peers"])

    def probe_of(self, address: str) -> str:
        """The address of the upper half that stands for the direct path to a machine. ``ValueError`` for one that is
        not in the lower half."""
        offset = int(ipaddress.ip_address(address)) - int(self.lower.network_address)
        if not 0 < offset < self.lower.num_addresses:
            raise ValueError(address)
        return str(self.upper.network_address + offset)

    def take(self, entries: Iterable[dict[str, Any]]) -> None:
        """Take the list of machines: who is not on it is no peer any more."""
        machines: dict[str, peers.Peer] = {}
        for entry in entries:
            address = str(entry["address"])
            if address == self.address:
                continue
            peer = self.peers.get(address)
            if peer is None or peer.key != entry["key"]:
                peer = peers.Peer(entry, self.probe_of(address))
            peer.hub, endpoints = bool(entry.get("hub")), [str(endpoint) for endpoint in entry.get("endpoints") or ()]
            peer.endpoints = endpoints or ([] if peer.hub else peer.endpoints)
            machines[address] = peer
        self.peers = machines
        self.by_probe = {peer.probe: peer for peer in machines.values()}
        if self.home not in machines:
            self.home = ""

    # --- the interface ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the interface, or go on with the one that is there."""
        try:
            peers.run("ip", "link", "show", INTERFACE)
        except subprocess.CalledProcessError:
            try:
                peers.run("ip", "link", "add", INTERFACE, "type", "wireguard")
            except subprocess.CalledProcessError:
                peers.run("wireguard-go", INTERFACE)
        peers.run(
            "wg",
            "set",
            INTERFACE,
            "listen-port",
            str(self.port),
            "private-key",
            os.path.join(peers.STATE, "overlay.key"),
        )
        length = str(self.network.prefixlen)
        peers.run("ip", "address", "replace", f"{self.address}/{length}", "dev", INTERFACE)
        peers.run(
            "ip", "address", "replace", f"{self.probe_of(self.address)}/{length}", "dev", INTERFACE, "noprefixroute"
        )
        peers.run("ip", "link", "set", INTERFACE, "mtu", str(MTU), "up")
        if self.hub:
            # What one machine sends to another leaves by where it came.
            with open(f"/proc/sys/net/ipv4/conf/{INTERFACE}/send_redirects", "w") as file:
                file.write("0")
        present = {
            line.split("\t")[0]: line.split("\t")[3]
            for line in peers.run("wg", "show", INTERFACE, "dump").splitlines()[1:]
        }
        self.written = {key: tuple(sorted(text.split(","))) for key, text in present.items()}
        self.apply()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.probe_of(self.address), PROBE_PORT))
        self.socket.settimeout(0.2)

    def allowed(self) -> dict[str, tuple[str, ...]]:
        """Addresses that each peer sends from and is sent to, by its key."""
        ranges_of = {peer.key: {f"{peer.probe}/32"} for peer in self.peers.values()}
        for peer in self.peers.values():
            through = self.through(peer)
            if through is not None:
                ranges_of[through.key].add(f"{peer.address}/32")
        if not self.hub and self.home:
            ranges_of[self.peers[self.home].key] |= {str(self.lower), f"{self.home}/32"}
        return {key: tuple(sorted(ranges)) for key, ranges in ranges_of.items()}

    def through(self, peer: peers.Peer) -> peers.Peer | None:
        """The peer that a machine's packets go to; None: to this machine's home."""
        if not self.hub:
            return peer if peer.direct and not peer.hub else None
        if peer.hub or self.homes(peer, self.address):
            return peer
        return next(
            (hub for hub in self.peers.values() if hub.hub and self.alive(hub) and peer.address in hub.homed), peer
        )

    def homes(self, peer: peers.Peer, hub: str) -> bool:
        """Whether the machine has said of late that the hub is its home."""
        return peer.home == hub and self.alive(peer)

    def alive(self, peer: peers.Peer) -> bool:
        """Whether the direct path brings messages both ways."""
        return bool(peer.hears and time.monotonic() - peer.heard < DEAD)

    def apply(self) -> None:
        """Write what differs to the interface, in one command: what is as it was loses no packet."""
        ranges_of, arguments = self.allowed(), []
        for key in self.written.keys() - ranges_of.keys():
            arguments += ["peer", key, "remove"]
        # What an address is taken from is written first: an address is of whoever gets it last.
        changed = sorted((len(ranges), key) for key, ranges in ranges_of.items() if self.written.get(key) != ranges)
        for _, key in changed:
            arguments += ["peer", key, "allowed-ips", ",".join(ranges_of[key])]
        if arguments:
            peers.run("wg", "set", INTERFACE, *arguments)
            self.written = ranges_of

    # --- probes -------------------------------------------------------------------------------------------------------

    def message(self, peer: peers.Peer) -> dict[str, Any]:
        """The state of this machine, for a peer."""
        message: dict[str, Any] = {"hears": time.monotonic() - peer.heard < DEAD}
        if peer.hub:
            message |= {"home": self.home, "local": self.local(), "cursor": self.cursor, "seen": self.seen_version}
        if self.hub:
            message["version"] = self.version
            if peer.hub:
                message["homed"] = [each.address for each in self.peers.values() if self.homes(each, self.address)]
            else:
                message["you"] = peer.endpoint
        return message

    def send(self, peer: peers.Peer, **more: Any) -> None:
        """One probe. The network may not be there: then it is as lost as any other."""
        with suppress(OSError):
            self.socket.sendto(json.dumps({**self.message(peer), **more}).encode(), (peer.probe, PROBE_PORT))

    def receive(self) -> None:
        """Read probes for a moment. WireGuard has proven who sends from the address."""
        try:
            data, (source, _) = self.socket.recvfrom(LONGEST)
            message = json.loads(data)
        except (OSError, ValueError):
            return
        peer = self.by_probe.get(source)
        if peer is not None and isinstance(message, dict):
            # Whatever a machine says, the others go on.
            with suppress(ValueError, TypeError, AttributeError, KeyError):
                self.hear(peer, message)

    def hear(self, peer: peers.Peer, message: dict[str, Any]) -> None:
        """Take a probe; a change of either end is answered at once."""
        before = (self.alive(peer), peer.direct, peer.home, self.home)
        was_heard = time.monotonic() - peer.heard < DEAD
        peer.heard, peer.hears = time.monotonic(), message.get("hears") is True
        peer.home, peer.local = str(message.get("home") or ""), peers.address_of(message.get("local"))
        peer.direct = peer.hears
        if peer.hub:
            self.learn(peer, message)
        self.choose_home()
        if (self.alive(peer), peer.direct, peer.home, self.home) != before or not was_heard:
            self.apply()
            self.send(peer)
            if self.hub:
                self.tell_hubs()
        if self.homes(peer, self.address) and self.hub and message.get("seen") != self.seen_version:
            self.send(peer, **self.page(int(message.get("cursor") or 0)))

    def tell_hubs(self) -> None:
        """Say at once to the other hubs which machines have their home here."""
        for peer in self.peers.values():
            if peer.hub:
                self.send(peer)

    def learn(self, hub: peers.Peer, message: dict[str, Any]) -> None:
        """Take what a hub says: which machines it is the home of, how new its list is, and the endpoints that it
        sees."""
        if isinstance(message.get("homed"), list):
            hub.homed = {str(address) for address in message["homed"]}
            if self.hub:
                self.apply()
        if message.get("version"):
            self.wanted = str(message["version"])
        if self.hub or hub.address != self.home:
            return
        self.own_endpoint = str(message.get("you") or "")
        for address, endpoint, local in message.get("page") or ():
            peer = self.peers.get(address)
            if peer is not None and not peer.hub:
                is_near = (
                    bool(self.own_endpoint) and endpoint.rpartition(":")[0] == self.own_endpoint.rpartition(":")[0]
                )
                endpoints = [local, endpoint] if is_near and local else [endpoint]
                if endpoints != peer.endpoints:
                    peer.endpoints, peer.begun, peer.last_tried = endpoints, time.monotonic(), -1
        if "page" in message:
            self.cursor = int(message["next"])
            if self.cursor:
                self.send(hub)
            else:
                self.seen_version = str(message["seen"])

    def page(self, cursor: int) -> dict[str, Any]:
        """Endpoints that this hub sees, from ``cursor`` on."""
        rows = [[peer.address, peer.endpoint, peer.local] for peer in self.seen_peers()]
        following = cursor + PAGE
        return {
            "page": rows[cursor:following],
            "next": following if following < len(rows) else 0,
            "seen": self.seen_version,
        }

    def seen_peers(self) -> Iterator[peers.Peer]:
        """Machines whose endpoint this hub knows from their own packets."""
        return (peer for peer in self.peers.values() if not peer.hub and peer.endpoint and self.alive(peer))

    def local(self) -> str:
        """Address and port of this machine in its own network; empty where it has none."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(("192.0.2.1", 9))
                return f"{probe.getsockname()[0]}:{self.port}"
        except OSError:
            return ""

    # --- each tick ----------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Drop what is dead, try what may be there, and say how things are."""
        for peer in self.peers.values():
            if peer.direct and not self.alive(peer):
                peer.direct, peer.begun, peer.last_tried = False, time.monotonic(), -1
        self.choose_home()
        self.apply()
        if self.hub:
            self.look_at_endpoints()
        due = [peer for peer in self.peers.values() if self.alive(peer) or self.is_due(peer)]
        self.point(due)
        for peer in due:
            self.send(peer)

    def is_due(self, peer: peers.Peer) -> bool:
        """Whether a path that is not there is tried now."""
        if peer.hub or (self.hub and time.monotonic() - peer.heard < EAGER):
            return True
        if self.hub or not peer.endpoints:
            return False  # Machines come to hubs.
        return bool(time.monotonic() - peer.begun < EAGER or time.time() % SLOT < WINDOW)

    def point(self, silent: Iterable[peers.Peer]) -> None:
        """Point silent peers at the next endpoint where each may be, in one command."""
        arguments, moment = [], time.monotonic()
        for peer in silent:
            if moment - peer.heard < DEAD or not peer.endpoints or moment - peer.tried < 2 * TICK:
                continue
            peer.tried, peer.last_tried = moment, (peer.last_tried + 1) % len(peer.endpoints)
            endpoint = peers.resolved(peer.endpoints[peer.last_tried])
            if endpoint:
                arguments += ["peer", peer.key, "endpoint", endpoint]
        if arguments:
            peers.run("wg", "set", INTERFACE, *arguments)

    def choose_home(self) -> None:
        """Keep the hub that is alive, else take the first that is. While none is the last one stays: it may be back
        first."""
        if self.hub or (self.home and self.alive(self.peers[self.home])):
            return
        living = sorted(peer.address for peer in self.peers.values() if peer.hub and self.alive(peer))
        if living:
            self.home, self.seen_version, self.cursor = living[0], "", 0

    def look_at_endpoints(self) -> None:
        """Read where packets of each machine come from."""
        lines = (line.split("\t") for line in peers.run("wg", "show", INTERFACE, "endpoints").splitlines())
        endpoints = {line[0]: line[1] for line in lines if len(line) == 2 and line[1] != "(none)"}
        for peer in self.peers.values():
            peer.endpoint = endpoints.get(peer.key, "")
        rows = [[peer.address, peer.endpoint, peer.local] for peer in self.seen_peers()]
        self.seen_version = format(zlib.crc32(json.dumps(rows).encode()), "x")

    # --- the list -----------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read the list anew: a hub each few seconds, any other when a hub has a newer one, and now and then."""
        age = time.monotonic() - self.looked
        due = age > (LOOK if self.hub else REFRESH) or (self.wanted not in ("", self.version) and age > TICK)
        if not due:
            return
        self.looked = time.monotonic()
        try:
            content = peers.fetch_list()
        except (OSError, ValueError, KeyError) as error:
            sys.stderr.write(f"the list: {type(error).__name__} {getattr(error, 'code', '')}\n")
            return
        if content["version"] != self.version:
            self.take(content["peers"])
            self.version = content["version"]
            self.apply()
            self.keep(content["peers"])

    def keep(self, entries: list[dict[str, Any]]) -> None:
        """Keep the list for the next start, when the cluster may not answer before this machine is in the overlay."""
        document = {**peers.load("overlay.json"), "peers": entries}
        path = os.path.join(peers.STATE, "overlay.json.new")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(document, file)
        os.replace(path, os.path.join(peers.STATE, "overlay.json"))

    def status(self) -> dict[str, Any]:
        """Paths as they are now, for people and for the script that waits for the first."""
        rows = {
            peer.address: "hub" if peer.hub and self.alive(peer) else "direct" if peer.direct else "relayed"
            for peer in self.peers.values()
        }
        return {"address": self.address, "home": self.home, "peers": rows, "version": self.version}


def keep(pause: Callable[[float], None] = time.sleep) -> None:
    """Keep the overlay until the process is ended."""
    overlay = Overlay(peers.load("overlay.json"))
    overlay.begin()
    report = stockyard_overlay_report.Report()
    after = 0.0
    while True:
        try:
            if time.monotonic() >= after:
                after = time.monotonic() + TICK
                overlay.tick()
                overlay.refresh()
                report.tell(overlay)
                with open(peers.STATUS + ".new", "w") as file:
                    json.dump(overlay.status(), file)
                os.replace(peers.STATUS + ".new", peers.STATUS)
            overlay.receive()
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"{error} {error.stderr}\n")
            overlay.written = {}
            pause(1)


if __name__ == "__main__":
    peers.enter() if sys.argv[1:] == ["enter"] else keep()
