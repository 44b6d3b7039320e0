"""An HTTP server of this machine that waits for connections and looks at no clock meanwhile.

The standard one looks many times a second whether it is to end, and a local cloud has a server for each process of a
function: together they took a twentieth of a core while nothing happened.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.server import ThreadingHTTPServer

FOREVER = 86_400.0
WAKE_SECONDS = 0.05


class LoopbackServer(ThreadingHTTPServer):
    """``serve_forever`` waits until somebody connects; ``shutdown`` does."""

    daemon_threads = True

    def serve_forever(self, poll_interval: float = FOREVER) -> None:
        """Serve until ``shutdown``."""
        super().serve_forever(poll_interval)

    def shutdown(self) -> None:
        """Stop serving, and wait for it. It has to have been started."""
        ending = threading.Thread(target=super().shutdown, daemon=True)
        ending.start()
        host, port = str(self.server_address[0]), self.server_address[1]
        while ending.is_alive():  # it may wait for a connection already, or only be about to
            with suppress(OSError), socket.create_connection((host, port), timeout=WAKE_SECONDS):
                ending.join(WAKE_SECONDS)
