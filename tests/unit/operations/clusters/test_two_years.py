"""Two years of a control plane: its machine's own script renews the certificates, and nobody else does anything.

The script is the one that machines are given, below another root and on commands that keep a clock of their own; what
it reports goes through the product's operations, and the sweep measures, all at one virtual time.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from stockyard.domain.clusters import kubeconfigs
from stockyard.domain.records import Cluster, Event
from stockyard.domain.values import times
from stockyard.machines import cloud_config
from stockyard.metrics import CERTIFICATE_DAYS
from stockyard.operations import cluster_secrets
from stockyard.operations.clusters.await_report import report_ready
from stockyard.operations.listing import every
from tests.harness.crash.machine_report import certificate, machine_report
from tests.harness.sweeping import Reaper
from tests.harness.worlds.memory import MemoryTelemetry
from tests.unit.operations.conftest import World

DAY = 86_400
YEAR = 365 * DAY
COMMANDS = {
    "openssl": 'while [ "$1" != -checkend ]; do shift; done; [ $(($(cat "$ROOT/ends") - NOW)) -gt "$2" ]',
    "kubeadm": f'[ "$*" = "certs renew all" ] && echo $((NOW + {YEAR})) >"$ROOT/ends"',
    "crictl": "exit 0",
    "python3": '[ "$2" = ready ] && [ ! -e "$ROOT/refuses" ] && touch "$ROOT/reports"',
}


class Machine:
    """A control plane's machine: when its certificates end, and its timer, weekly with up to six hours at random."""

    def __init__(self, root: Path, now: datetime, report: Callable[[datetime], None]) -> None:
        self._root, self._report, self._random = root, report, random.Random(1)
        self.renewals: list[datetime] = []
        for folder in ("bin", "etc/kubernetes/pki", "etc/stockyard"):
            (root / folder).mkdir(parents=True)
        (root / "etc/stockyard/client.json").touch()
        for name, command in COMMANDS.items():
            (root / "bin" / name).write_text(f"#!/bin/bash\n{command}\n")
            (root / "bin" / name).chmod(0o755)
        text = cloud_config.program("renew.sh").text
        self._script = root / "renew.sh"
        self._script.write_text(re.sub(r"(?<=[\s=\"])/(?=etc/)", f"{root}/", text))
        self._ends(int(now.timestamp()) + YEAR)
        self.next_run = now + timedelta(days=7)

    def _ends(self, moment: int) -> None:
        (self._root / "ends").write_text(str(moment))

    @property
    def expiry(self) -> datetime:
        """Time when the certificates end."""
        return datetime.fromtimestamp(int((self._root / "ends").read_text()), UTC)

    def refuses(self, *, reports: bool) -> None:
        """Whether reports fail from now on: Stockyard cannot be reached."""
        (self._root / "refuses").touch() if reports else (self._root / "refuses").unlink()

    def run(self, now: datetime) -> None:
        """The timer's unit; one that fails runs again an hour later."""
        before = self.expiry
        path = f"{self._root / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "ROOT": str(self._root), "NOW": str(int(now.timestamp()))}
        status = subprocess.run(["bash", str(self._script)], env=environment, check=False).returncode
        if self.expiry != before:
            self.renewals.append(now)
        reports = self._root / "reports"
        if reports.exists():
            reports.unlink()
            self._report(self.expiry)
        week = timedelta(days=7, seconds=self._random.uniform(0, 6 * 3600))
        self.next_run = now + (week if status == 0 else timedelta(hours=1))


@pytest.fixture
def ready(world: World) -> Cluster:
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    return world.cluster(cluster)


def report_of(world: World, cluster: Cluster, ends: datetime) -> dict[str, str]:
    authority = str(world.services.secrets.get(cluster_secrets.name(world.services, cluster, "ca")))
    report = machine_report(cluster.endpoint, authority)
    document = json.loads(report["kubeconfig"])
    data = base64.b64encode(certificate(ends)).decode()
    document["users"][0]["user"] = {"client-certificate-data": data}
    return {**report, "kubeconfig": json.dumps(document)}


def test_two_years_pass_without_an_alarm_or_an_interruption(world: World, ready: Cluster, tmp_path: Path) -> None:
    clock, services = world.clock, world.services

    def report(ends: datetime) -> None:
        current = world.cluster(ready)
        body = report_of(world, current, ends)
        report_ready(services, current, **body, proof=world.proof(current))

    begin_of_life = clock.now()
    machine = Machine(tmp_path, begin_of_life, report)
    report(machine.expiry)
    begin = world.cluster(ready)
    events = [event.id for event in every(services.store, Event)]
    reaper = Reaper(world.registry, clock, lambda tenant: world.services)
    days: list[float] = []
    expiries = {begin.certificates_expire_at}
    telemetry = cast(MemoryTelemetry, services.telemetry)
    # Stockyard cannot be reached for three days when the first renewal is due; the machine is off for five weeks later.
    outage = (clock.now() + timedelta(days=275), clock.now() + timedelta(days=282))
    off = (clock.now() + timedelta(days=540), clock.now() + timedelta(days=575))
    end = clock.now() + timedelta(days=730)
    step = timedelta(days=1)
    unreachable = False
    while clock.now() < end:
        clock.advance(step.total_seconds())
        now = clock.now()
        if (outage[0] <= now < outage[1]) != unreachable:
            unreachable = not unreachable
            machine.refuses(reports=unreachable)
        if now >= machine.next_run and not off[0] <= now < off[1]:
            machine.run(now)
        reaper.run()
        current = world.cluster(ready)
        expiries.add(current.certificates_expire_at)
        assert current.status == "ready"
        days.append((times.from_text(str(current.certificates_expire_at)) - now).total_seconds() / DAY)
    assert min(days) > 30, "the alarm stays quiet"
    assert min(telemetry.values[CERTIFICATE_DAYS.name]) > 30
    assert len(telemetry.values[CERTIFICATE_DAYS.name]) > 700
    # One that is not heard is done again each hour until it is.
    earlier = [begin_of_life, *machine.renewals]
    periods = [moment for before, moment in pairwise(earlier) if moment - before > timedelta(days=30)]
    assert len(periods) == 2, periods
    assert sorted(str(expiry) for expiry in expiries)[-1] == times.to_text(machine.expiry)
    assert len(expiries) >= 3, "what people see moves forward"
    last = world.cluster(ready)
    assert (last.conditions, last.generation, last.attempt) == (begin.conditions, begin.generation, begin.attempt)
    assert [event.id for event in every(services.store, Event)] == events, "nothing happened to the cluster"
    kubeconfig = str(services.secrets.get(cluster_secrets.name(services, ready, "kubeconfig")))
    assert kubeconfigs.expires_at(kubeconfigs.check(kubeconfig)) == times.to_text(machine.expiry)
