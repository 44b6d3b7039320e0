"""Cudo Compute for the crash world: the simulated one, in whose project every request passes the tap, and a Vault."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import httpx

from local.machines.programs import VAULT_CONFIG, script_files
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.values.ids import account_secret
from stockyard.machines.control_plane import CONFIG_PATH
from stockyard.providers.clouds.cudo import access
from stockyard.providers.clouds.cudo.access import API_KEY, VAULT_SECRET_ID
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.vault import Vault, VaultClient
from tests.harness.crash.cloud import Story
from tests.harness.crash.faults import Call, Tap
from tests.harness.crash.tapped_cudo import TappedCudo, named
from tests.harness.crash.vault import ADDRESS, CrashVault, tapped
from tests.harness.worlds.cudo_yard import KEY, NUMBER, CudoYard
from tests.harness.worlds.memory import FixedClock

CHEAP, DEAR = "epyc-milan", "intel-broadwell"
"""The machine types that are sold."""
_KEEP = (Call("provision:control_plane", "cudo.UpdateVMExpireTime", 1),)
_MACHINE = ("provision:control_plane", "provision:compensate")


class CrashCudo:
    """A tenant's project. ``outside`` counts the requests of all lives that the vendor's document does not know."""

    rows = "standalone"
    body: Mapping[str, Any] = {
        "name": "demo",
        "description": "d",
        "cloud_account_id": int(NUMBER),
        "cluster_type": "k8s",
        "settings": {"control_plane_size": "sm"},
    }
    stories: Mapping[str, Story] = {
        "clean": Story(),
        "undone": Story((Call("provision:network", "cudo.CreateNetwork", 1),)),
        "blocked": Story((Call("delete:network", "cudo.DeleteNetwork", 1),)),
        "kept": Story(_KEEP, _MACHINE, keeps_failed=True),
        "swept": Story(_KEEP, ("sweep_scope",), keeps_failed=True, is_swept=True),
        "scarce": Story((), ("provision:control_plane",)),
        "full": Story((), _MACHINE),
        "failed_disk": Story((), ("provision:disk", "provision:compensate")),
        "failed_machine": Story((), _MACHINE),
    }
    """In ``scarce`` there is room for the dearer type alone when the machine is to be made, in ``full`` for none."""

    def __init__(self) -> None:
        self.chance = random.Random(0)
        self._clock = FixedClock()
        self._out: tuple[str, ...] = ()
        self._outside = 0
        self.yard = CudoYard(CHEAP, DEAR)
        self.vault = CrashVault(self._clock)

    @property
    def outside(self) -> int:
        """Number of requests that the vendor's document did not know, in all lives."""
        return self._outside + len(self.yard.cudo.outside)

    @contextmanager
    def installed(self, tap: Tap, clock: FixedClock) -> Iterator[None]:
        """See ``CrashCloud.installed``. The pauses of the client pass on the clock."""
        self._clock = clock
        transport = TappedCudo(self._answer, tap)

        def client(key: str, project: str, **_: Any) -> Cudo:
            return Cudo(key, project, transport=transport, pause=_pausing(clock), chance=self.drawn)

        def vault_client(vault: Vault, *_: Any, **__: Any) -> VaultClient:
            return tapped(vault, self.vault.vault, tap)

        with patch.object(access, "Cudo", client), patch.object(access, "VaultClient", vault_client):
            yield

    @contextmanager
    def begin(self, story: str) -> Iterator[None]:
        """See ``CrashCloud.begin``."""
        self._outside = self.outside
        self.yard = CudoYard(CHEAP, DEAR, clock=self._clock)
        self.vault = CrashVault(self._clock)
        self._out = {"scarce": (CHEAP,), "full": (CHEAP, DEAR)}.get(story, ())
        failing = {"failed_disk": "CreateStorageDisk", "failed_machine": "CreateVM"}
        if story in failing:
            self.yard.cudo.plan.failing[failing[story]] = 1
        yield

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith("/vm"):
            # Its list of types says that there is room: somebody else was faster.
            self.yard.run_out(self._out)
        return self.yard.cudo.answer(request)

    def drawn(self) -> float:
        """Random number for the client's pauses, in whatever life."""
        return self.chance.random()

    def account(self, moment: str) -> CloudAccount:
        """See ``CrashCloud.account``."""
        account = self.yard.account
        attributes = {**account.attributes, "vault_address": ADDRESS, "vault_role_id": self.vault.role_id}
        return replace(account, attributes=attributes, secrets=(*account.secrets, VAULT_SECRET_ID))

    def secrets(self) -> Mapping[str, str]:
        """See ``CrashCloud.secrets``."""
        values = {API_KEY: KEY, VAULT_SECRET_ID: self.vault.secret_id}
        return {account_secret("acme", NUMBER, name): value for name, value in values.items()}

    def repair(self) -> None:
        """See ``CrashCloud.repair``: there is room again."""
        self._out = ()

    def things(self) -> set[tuple[str, str]]:
        """See ``CrashCloud.things``."""
        ids_by_kind = {
            "vm": self.yard.machines(),
            "disk": self.yard.project.disks,
            "network": self.yard.project.networks,
            "security_group": self.yard.project.groups,
            "disk_key": self.vault.keys(),
        }
        return {(kind, named(kind, name)) for kind, names in ids_by_kind.items() for name in names}

    def differences(self, cluster: Cluster) -> list[str]:
        """See ``CrashCloud.differences``. Clusters here do not change."""
        return []

    def alive(self, machine_id: str) -> bool:
        """See ``CrashCloud.alive``: it is on, and has not failed."""
        return any(document["state"] == "ACTIVE" for document in self._documents(machine_id))

    def machine_token(self, machine_id: str) -> str | None:
        """See ``CrashCloud.machine_token``. A machine opens its disk before it proves itself."""
        for document in self._documents(machine_id):
            files = script_files(document["startScript"])
            self.vault.open_disk(machine_id, json.loads(files[VAULT_CONFIG]))
            return str(json.loads(files[CONFIG_PATH])["token"])
        raise AssertionError(f"there is no machine {machine_id}")

    def _documents(self, machine_id: str) -> list[Mapping[str, Any]]:
        return [document for document in self.yard.cudo.machines().values() if document["id"] == machine_id]


def _pausing(clock: FixedClock) -> Any:
    def pause(seconds: float) -> None:
        clock.advance(seconds)

    return pause
