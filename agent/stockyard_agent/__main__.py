"""``python -m stockyard_agent``: the agent with the clock, the network and the signals of a container."""

from __future__ import annotations

import os
import random
import signal
import ssl
import sys
import threading
import time
from datetime import datetime, timezone

from .authority import pin
from .desk import Desk
from .kubernetes import Kubernetes
from .loop import Agent
from .observation import timestamp
from .settings import Settings
from .transport import https
from .uplink import Uplink

_TIMEOUT = 20.0
"""Seconds of one wait. An eviction may take the API ten, when budgets change under it."""
_FAREWELL = 0.3
"""Seconds that a round has to finish when the process is told to end."""


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(timezone.utc)  # noqa: UP017


def log(text: str) -> None:
    """One line to standard error."""
    sys.stderr.write(f"{timestamp(now())} {text}\n")
    sys.stderr.flush()


def assembled(settings: Settings) -> Agent:
    """The agent over real connections. Raises ``OSError`` when the service account's files are not there."""
    inside = ssl.create_default_context(cafile=str(settings.account / "ca.crt"))
    kube = Kubernetes(settings.kubernetes_url, https(inside, timeout=_TIMEOUT, proxies={}), settings.account_token)
    uplink = Uplink(
        api_url=settings.api_url,
        cluster_id=settings.cluster_id,
        token_url=settings.token_url,
        exchange=https(ssl.create_default_context(), timeout=_TIMEOUT),
        credentials=settings.credentials,
        monotonic=time.monotonic,
    )
    desk = Desk(kube, now=now, monotonic=time.monotonic, log=log, own_pod=settings.own_pod)
    return Agent(kube, uplink, desk, authority=settings.authority, pin=pin, now=now, jitter=random.random, log=log)


def main() -> int:
    """Run until SIGTERM or SIGINT. The exit code: 0 when told to end, 1 when it could not start or go on."""
    try:
        agent = assembled(Settings.read(os.environ))
    except (OSError, ValueError) as error:
        log(f"cannot start: {error}")
        return 1
    # Blocked before there are threads and waited for below: a handler could come while the event's lock is held.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    over = threading.Event()
    # A thread of its own, because a call to the network may block longer than a pod has time to end. Whatever it is at
    # when the process ends is done again by the next agent.
    thread = threading.Thread(target=agent.run, args=(over.wait,), daemon=True, name="rounds")
    thread.start()
    ended = False
    while thread.is_alive() and not ended:
        ended = signal.sigtimedwait(ends, 1.0) is not None
    over.set()
    thread.join(_FAREWELL)
    log("ends as told" if ended else "ends: its loop is gone")
    sys.stderr.flush()
    os._exit(0 if ended else 1)


if __name__ == "__main__":
    sys.exit(main())
