"""Node providers of the examples folder, applied as they stand: a claim gets a machine of each, and nothing is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount, NodeClaim, NodeProvider
from stockyard.edge.http.yaml_body import parse
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.ports import Put, Remove
from tests.harness.bare_metal.yard import BareMetalYard
from tests.harness.worlds.cudo_yard import CudoYard
from tests.harness.worlds.kubernetes_host import NUMBER
from tests.workflows import cudo_life
from tests.workflows.bare_metal_life import BareMetalLife
from tests.workflows.config_map_life import ConfigMapLife
from tests.workflows.cudo_life import CudoLife
from tests.workflows.kubevirt_life import KubeVirtLife
from tests.workflows.machine_life import MachineLife

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
USER = "user:ann"


def run_by(life: MachineLife, name: str, account: str | None = None) -> None:
    """Apply the example in place of the provider that the life has, and have a claim live by it. ``account`` is what
    the example calls the account of the life's host."""
    services = life.nodes.services
    for provider in list(every(services.store, NodeProvider)):
        services.store.commit(Remove(NodeProvider, provider.id))
    if account is not None:
        host = services.store.get(CloudAccount, NUMBER)
        assert host is not None
        services.store.commit(Put(replace(host, name=account)))
    documents = parse((EXAMPLES / name).read_bytes(), 32)
    desired = read_desired(services, documents, USER, admin=True)
    results = apply_manifests(services, desired, USER, "req-1")
    assert {result["action"] for result in results} == {"created"}
    plan = plan_manifests(services, read_desired(services, documents, USER, admin=True))
    assert [plan[part] for part in ("creates", "changes", "deletes")] == [[], [], []]
    (provider,) = every(services.store, NodeProvider)
    life.provider = f"{provider.name}."
    assert life.run() == "Available"
    assert life.powered, "the machine was of this provider"
    assert (life.cloud.leftovers(), list(every(services.store, NodeClaim))) == ([], [])


class OfCompute(BareMetalLife):
    """A life on hosts that their owner lends for computing."""

    def made_yard(self, clock: Any) -> BareMetalYard:
        return BareMetalYard({name: {"role": "compute"} for name in ("m1", "m2")}, clock)


def test_hosts_of_bare_metal() -> None:
    run_by(OfCompute(), "bare-metal.yaml", "metal")


def test_machines_with_a_gpu_of_cudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudo_life, "CudoYard", lambda *_, clock: CudoYard(clock=clock))
    run_by(CudoLife(), "cudo-nodes.yaml")


def test_machines_of_a_site() -> None:
    run_by(ConfigMapLife(), "site-nodes.yaml", "metal")


def test_virtual_machines() -> None:
    run_by(KubeVirtLife(), "virtual-machines.yaml", "vms")
