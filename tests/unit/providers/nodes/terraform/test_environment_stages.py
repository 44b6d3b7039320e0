"""Stages of an environment: their conditions, what the second one is given, and what a later apply may do to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.run_records import RunState
from stockyard.operations import cluster_secrets
from stockyard.operations.engine.advance import Fence
from stockyard.operations.listing import every
from stockyard.operations.node_claims.environment_stages import look_at_stages
from stockyard.operations.node_claims.environments import clear_all, ensure
from stockyard.ports import Replace
from stockyard.providers.nodes.terraform.environments import secrets_in
from tests.workflows.faulty_cloud import CLUSTER
from tests.workflows.machine_life import CLAIM
from tests.workflows.terraform_life import TerraformLife

KUBECONFIG = """users:
- name: admin
  user:
    client-certificate-data: Q0VSVA==
    client-key-data: canary-key
    token: "canary-token"
"""


class StagedLife(TerraformLife):
    """A life that stops when the node is there. Its environment has two stages."""

    stages = ("infrastructure", "kubernetes")

    def __init__(self) -> None:
        super().__init__(environment=True)
        services = self.nodes.services
        cluster = services.store.get(Cluster, CLUSTER)
        assert cluster is not None
        services.secrets.put(cluster_secrets.name(services, cluster, "kubeconfig"), KUBECONFIG)

    def _delete(self) -> None:
        """Nothing is deleted."""

    def _clear(self) -> None:
        """Nothing is cleared."""

    def environment(self) -> NodeEnvironment:
        (environment,) = every(self.nodes.services.store, NodeEnvironment)
        return environment

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition of the environment."""
        return {each.type: (each.status, each.reason) for each in self.environment().conditions}

    def change(self, **fields: Any) -> None:
        """Change the provider, and let the sweep look at the environment a while later."""
        services = self.nodes.services
        (provider,) = every(services.store, NodeProvider)
        services.store.commit(Replace(replace(provider, version=provider.version + 1, **fields)))
        self.nodes.clock.advance(60)
        look_at_stages(services, self.environment())

    def used_again(self, looks: int = 6) -> None:
        """Another claim uses the environment, and its runs end."""
        for _ in range(looks):
            claim = self.nodes.services.store.get(NodeClaim, CLAIM)
            assert claim is not None
            ensure(self.nodes.services, claim, replace(Fence.of(claim), operation_id="op_other"))
            self.nodes.clock.advance(300)
            self.memory_runner.play()


@pytest.fixture
def life() -> StagedLife:
    life = StagedLife()
    assert life.run() == "Available"
    return life


def test_each_stage_has_conditions_and_the_second_one_the_clusters_kubeconfig(life: StagedLife) -> None:
    assert life.conditions() == {
        "Provisioned": ("True", "Applied"),
        "Synced": ("True", "Synced"),
        "KubernetesProvisioned": ("True", "Applied"),
        "KubernetesSynced": ("True", "Synced"),
    }
    infrastructure, kubernetes, node = life.tofu.tasks
    assert kubernetes["kubeconfig"] == KUBECONFIG
    assert kubernetes["secrets"] == ["canary-key", "canary-token"]
    assert ("kubeconfig" in infrastructure, "kubeconfig" in node) == (False, False)
    assert "canary" not in str(list(life.nodes.services.store.list(NodeEnvironment).items))


def test_a_stage_that_is_not_as_the_document_says_is_applied_again_with_the_next_claim(life: StagedLife) -> None:
    (provider,) = every(life.nodes.services.store, NodeProvider)
    block = provider.spec["terraform"]
    template = {**block["nodeEnvironmentTemplate"], "kubernetes": {"inline": "# other", "timeout": "10m"}}
    life.change(spec={"terraform": {**block, "nodeEnvironmentTemplate": template}})
    assert life.conditions()["KubernetesSynced"] == ("False", "TemplateChanged")
    assert life.conditions()["Synced"] == ("True", "Synced")
    assert life.environment().is_stale
    life.used_again()
    assert life.conditions()["KubernetesSynced"] == ("True", "Synced")
    assert not life.environment().is_stale
    runs = len(life.runs())
    life.used_again(2)
    assert len(life.runs()) == runs, "once"


def test_a_later_apply_that_fails_leaves_what_stands(life: StagedLife) -> None:
    machines = dict(life.tofu.machines)
    life.tofu.fails.add("demo")
    life.change(properties={"size": "large"})
    assert life.conditions()["Synced"] == ("False", "TemplateChanged")
    life.used_again(2)
    assert life.conditions()["Synced"] == ("False", "RunFailed")
    assert life.conditions()["Provisioned"] == ("True", "Applied")
    assert life.environment().phase == "Available"
    assert life.tofu.machines == machines
    (state,) = (each for each in every(life.nodes.services.store, RunState) if each.id.endswith("/infrastructure"))
    assert state.is_applied


def test_a_first_apply_that_fails_is_said() -> None:
    life = StagedLife()
    life.tofu.fails.add("demo")
    assert life.run() == "Failed"
    conditions = life.conditions()
    assert conditions["Provisioned"] == ("False", "RunFailed")
    assert conditions["KubernetesProvisioned"] == ("Unknown", "Pending")


def test_the_second_stage_goes_with_a_cluster_that_cannot_be_reached_any_more(life: StagedLife) -> None:
    services = life.nodes.services
    cluster = services.store.get(Cluster, CLUSTER)
    assert cluster is not None
    deleting = replace(cluster, status="deleting", version=cluster.version + 1)
    services.store.commit(Replace(deleting))
    life.tofu.unreachable = True
    for _ in range(8):
        if clear_all(services, deleting, "op_deletion").done:
            break
        life.nodes.clock.advance(300)
        life.memory_runner.play()
    destroyed = [task for task in life.tofu.tasks if task["command"] == "destroy"]
    assert [("kubeconfig" in task) for task in destroyed] == [True, False]
    assert not [state for state in every(services.store, RunState) if not state.id.startswith(CLAIM)]


def test_what_of_a_kubeconfig_no_log_may_show() -> None:
    assert secrets_in(KUBECONFIG) == ("canary-key", "canary-token")
    assert secrets_in('{"users": [{"user": {"token": "canary"}}]}') == ("canary",)
    assert secrets_in(None) == ()
