"""Tells the cluster how this machine is reached in the overlay: one annotation of its own Node, for people to read.

Nothing acts by it. It is written when something is another way than it said, once a minute at most, and else once an
hour. It stands beside ``stockyard_overlay``. Standard library only.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from datetime import datetime, timezone
from typing import Any

import stockyard_overlay_peers as peers  # type: ignore[import-not-found]

ANNOTATION = "stockyard.dev/overlay"
PAUSE = 12 * peers.TICK
REPEAT = 720 * peers.TICK
SILENT = 12 * peers.TICK
MOST_RELAYED, MOST_DOWN = 20, 30
USER = b"system:node:"


def moment(seconds: float) -> str:
    """A time as Stockyard writes it."""
    utc = datetime.fromtimestamp(seconds, timezone.utc)  # noqa: UP017 - machines may have an older Python
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03d}Z"


def own_node() -> str:
    """Name of this machine's Node, by its kubelet's certificate. Raises ``OSError``, ``ValueError``."""
    with open(peers.KUBELET) as file:
        body = file.read().split("-----BEGIN CERTIFICATE-----")[1].split("-----END")[0]
    content = base64.b64decode(body)
    index = content.index(USER)
    return content[index + len(USER) : index + content[index - 1]].decode()


class Report:
    """Progress of what this machine has told. ``written`` is what it said last, without the time of a handshake."""

    def __init__(self) -> None:
        self.written: dict[str, Any] | None = None
        self.told = float("-inf")
        # A program that begins has heard nobody yet.
        self.tried = time.monotonic() - PAUSE + 4 * peers.TICK
        self.home, self.since = "", ""
        self.lost: dict[str, str] = {}

    def look(self, overlay: Any) -> dict[str, Any]:
        """The state of the machine's paths now. A hub says besides whom it has not heard for a minute."""
        now = time.monotonic()
        if overlay.home != self.home:
            self.home, self.since = overlay.home, moment(time.time())
        distant_peers = [peer for peer in overlay.peers.values() if not peer.direct and not overlay.alive(peer)]
        if overlay.hub:
            silent = {
                peer.address: moment(time.time() - now + max(peer.heard, peer.begun))
                for peer in distant_peers
                if now - max(peer.heard, peer.begun) > SILENT
            }
            # The clock may be set meanwhile: what was said of a silence stands until it ends.
            self.lost = {address: self.lost.get(address, at) for address, at in silent.items()}
        content: dict[str, Any] = {"direct": len(overlay.peers) - len(distant_peers)}
        if self.home:
            content |= {"home": self.home, "since": self.since}
        if overlay.hub:
            return content | {"down": dict(sorted(self.lost.items())[:MOST_DOWN])}
        relayed = sorted(peer.address for peer in distant_peers)
        return content | {"relayed": relayed[:MOST_RELAYED], "count": len(relayed)}

    def handshake(self, overlay: Any) -> dict[str, str]:
        """The moment of the last handshake with the home, of a hub with anybody; empty before the first."""
        lines = peers.run("wg", "show", overlay.interface, "latest-handshakes").split()
        moments = dict(zip(lines[::2], map(int, lines[1::2]), strict=False))
        home = overlay.peers.get(self.home)
        last = moments.get(home.key, 0) if home is not None else max(moments.values(), default=0)
        return {"handshake": moment(last)} if last else {}

    def tell(self, overlay: Any) -> None:
        """Write what is new, if it is time. The cluster may not answer, or not know this machine yet: later then."""
        now = time.monotonic()
        if now - self.tried < PAUSE:
            return
        content = self.look(overlay)
        if content == self.written and now - self.told < REPEAT:
            return
        self.tried = now
        try:
            write(json.dumps({**content, **self.handshake(overlay)}, separators=(",", ":")))
        except (OSError, ValueError, KeyError):
            return
        self.written, self.told = content, now


def write(text: str) -> None:
    """Annotate this machine's own Node, which its kubelet may. Raises ``OSError``, ``ValueError``, ``KeyError``."""
    body = json.dumps({"metadata": {"annotations": {ANNOTATION: text}}}).encode()
    headers = {"Content-Type": "application/merge-patch+json"}
    endpoint = peers.load("endpoint.json")
    url = f"https://{endpoint['host']}:{endpoint['port']}/api/v1/nodes/{own_node()}"
    request = urllib.request.Request(url, body, headers, method="PATCH")
    with urllib.request.urlopen(request, timeout=peers.SECONDS, context=peers.own_context()):  # noqa: S310
        pass
