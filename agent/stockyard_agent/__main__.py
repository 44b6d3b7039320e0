"""``python -m stockyard_agent``: the agent with the clock, the network and the signals of a container."""

from __future__ import annotations

import os
import random
import ssl
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone

from .authority import pin
from .certificates import Approvals
from .commands.inbox import CommandInbox
from .connection import KeptConnection
from .kubeconfig_secrets import KubeconfigSecrets
from .kubernetes import Kubernetes
from .loop import Agent
from .mirror import Mirror
from .observation import timestamp
from .overlay import OverlayList
from .pod_reports import PodReports
from .process import run_until_signal
from .settings import Settings
from .stockyard_api import StockyardApi
from .transport import https

_TIMEOUT = 20.0
"""Seconds for one network wait. An eviction may take ten seconds when budgets change at the same time."""


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(timezone.utc)  # noqa: UP017


def log(text: str) -> None:
    """One line to standard error."""
    sys.stderr.write(f"{timestamp(now())} {text}\n")
    sys.stderr.flush()


def connected(settings: Settings) -> tuple[Kubernetes, StockyardApi]:
    """Connections of one thread. Raises ``OSError`` when the service account's files are missing."""
    inside = ssl.create_default_context(cafile=str(settings.account / "ca.crt"))
    kube = Kubernetes(settings.kubernetes_url, KeptConnection(inside, timeout=_TIMEOUT), settings.account_token)
    stockyard_api = StockyardApi(
        api_url=settings.api_url,
        cluster_id=settings.cluster_id,
        token_url=settings.token_url,
        exchange=https(ssl.create_default_context(), timeout=_TIMEOUT),
        credentials=settings.credentials,
        monotonic=time.monotonic,
    )
    return kube, stockyard_api


def reporting(settings: Settings, waiting: Callable[[], None]) -> PodReports:
    """The reports of pods, with connections of their own: they have to be quick while a round takes its time."""
    kube, stockyard_api = connected(settings)
    return PodReports(
        kube, stockyard_api, now=now, monotonic=time.monotonic, jitter=random.random, log=log, waiting=waiting
    )


def mirroring(settings: Settings) -> Mirror:
    """The mirror of pools and claims, with connections of its own: many objects must hold nothing up."""
    return Mirror(*connected(settings), jitter=random.random, log=log)


def keeping(settings: Settings) -> KubeconfigSecrets:
    """The Secrets with kubeconfigs, with connections of their own: they are due at their time."""
    return KubeconfigSecrets(*connected(settings), monotonic=time.monotonic, jitter=random.random, log=log)


def assembled(settings: Settings, mirror: Mirror, secrets: KubeconfigSecrets) -> Agent:
    """The agent with real connections. Raises ``OSError`` when the service account's files are missing."""
    kube, stockyard_api = connected(settings)
    inbox = CommandInbox(kube, now=now, monotonic=time.monotonic, log=log, own_pod=settings.own_pod)
    approvals = Approvals(kube, now=now, log=log, own_hosts=frozenset({settings.kubernetes_host}))
    return Agent(
        kube,
        stockyard_api,
        inbox,
        approvals,
        authority=settings.authority,
        pin=pin,
        now=now,
        jitter=random.random,
        log=log,
        mirror=mirror.hear,
        secrets=secrets.hear,
        overlay=OverlayList(kube, log),
    )


def main() -> int:
    """Run until SIGTERM or SIGINT. Returns 0 after a signal, 1 when the agent could not start or its loop ended."""
    try:
        settings = Settings.read(os.environ)
        mirror, secrets = mirroring(settings), keeping(settings)
        agent = assembled(settings, mirror, secrets)
        reports = reporting(settings, agent.come_soon)
        agent.attach(reports)
    except (OSError, ValueError) as error:
        log(f"cannot start: {error}")
        return 1
    loops = {"rounds": agent.run, "pods": reports.run, "mirror": mirror.run, "secrets": secrets.run}
    return run_until_signal(loops, log)


if __name__ == "__main__":
    sys.exit(main())
