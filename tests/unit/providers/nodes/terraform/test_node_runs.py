"""Runs of a claim: their tasks, their ends as errors, and a deletion that begins before, while and after they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount, NodeClaim, NodeProvider, Operation
from stockyard.operations.listing import every
from stockyard.ports import Create, Replace
from tests.workflows.terraform_life import TerraformLife


class EndedLife(TerraformLife):
    """A life that keeps the operations, and may change its provider before the deletion."""

    changes: dict[str, Any] | None = None

    def _delete(self) -> None:
        if self.changes is not None:
            provider = next(each for each in every(self.nodes.services.store, NodeProvider) if each.name == "tofu")
            block = {**provider.spec["terraform"], **self.changes}
            changed = replace(provider, spec={"terraform": block}, version=provider.version + 1)
            self.nodes.services.store.commit(Replace(changed))
        super()._delete()

    def operation_of(self, kind: str) -> Operation:
        return next(each for each in every(self.nodes.services.store, Operation) if each.kind == kind)


def test_a_template_of_nodes_is_given_the_outputs_of_its_environment() -> None:
    life = EndedLife(environment=True)
    assert life.run() == "Available"
    environment, node = life.tofu.tasks[0]["variables"]["vcluster"], life.tofu.tasks[1]["variables"]["vcluster"]
    assert (environment["name"], environment["nodeProvider"]["metadata"]["name"]) == ("demo", "tofu")
    assert node["nodeEnvironment"]["outputs"] == {"infrastructure": {"ip": "10.0.0.1"}}
    assert (node["name"], node["nodeClaim"]["spec"]["typeRef"]) == ("one", "tofu.small")
    assert node["userData"].startswith("#!/bin/bash")


def test_what_was_applied_is_destroyed_whatever_the_document_says_by_then() -> None:
    life = EndedLife()
    life.changes = {"nodeTemplate": {"inline": "# another one", "timeout": "5m"}}
    life.tofu.commit = "a" * 40
    life.run()
    applied, destroyed = life.tofu.tasks
    assert (applied["command"], destroyed["command"]) == ("apply", "destroy")
    for part in ("files", "variables", "timeout_seconds"):
        assert destroyed[part] == applied[part], part
    assert (applied.get("commit"), destroyed["commit"]) == (None, "a" * 40)
    assert life.wrong() == []


def test_what_was_applied_is_destroyed_in_its_account_whatever_the_document_says_by_then() -> None:
    """OpenTofu finds nothing in another account, and would forget a machine that goes on."""
    life = EndedLife()
    store, accounts = life.nodes.services.store, list[str]()
    own = next(each for each in every(store, CloudAccount) if each.provider == "aws")
    store.commit(Create(replace(own, id="77", name="another", external_id="another")))
    start = life.memory_runner.start
    life.memory_runner.start = lambda target, run: accounts.append(target.account.id) or start(target, run)
    life.changes = {"runner": {"cloudAccount": 77}}
    life.run()
    assert accounts == [own.id, own.id], "applied and destroyed"
    assert life.wrong() == []


@pytest.mark.parametrize(("kind", "cause"), [("fails", "RunFailed"), ("stuck", "RunKilled")])
def test_each_end_of_a_run_is_an_error_of_its_own(kind: str, cause: str) -> None:
    life = EndedLife()
    getattr(life.tofu, kind).add("one")
    assert life.run() == "Failed"
    error = life.operation_of("create_node").error
    assert error is not None
    assert (error.error_type, error.cause_type) == ("NodeCouldNotBeProvisioned", cause)
    assert life.cloud.leftovers() == []
    assert life.nodes.nothing_left()
    commands = [(run.command, run.end) for run in life.runs()]
    if kind == "fails":
        assert commands == [("apply", "failed")], "it was destroyed in the same run, so no other is needed"
    else:
        assert commands == [("apply", "killed"), ("destroy", "done")]
        assert life.tofu.tasks[1]["unsure"], "the template is applied again before"


def test_a_run_whose_machine_ends_is_followed_by_another() -> None:
    life = EndedLife()
    life.memory_runner.queue_seconds = 30
    original, starts = life.memory_runner.start, []

    def start(target: Any, new: Any) -> str:
        vendor_id = original(target, new)
        starts.append(vendor_id)
        if len(starts) == 1:
            life.memory_runner.forget(vendor_id)
        return vendor_id

    life.memory_runner.start = start
    assert life.run() == "Available"
    ends = [(run.command, run.end, run.retries) for run in life.runs()]
    assert ends == [("apply", "lost", 0), ("apply", "done", 1), ("destroy", "done", 0)]
    assert life.wrong() == []


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_claim_that_is_deleted_before_its_run_begins_or_ends_starts_no_other(has_begun: bool) -> None:
    life = EndedLife()
    life.memory_runner.queue_seconds = 0 if has_begun else 10**6
    life.injection.point = ""
    phases: list[str] = []

    def before(phase: str) -> None:
        phases.append(phase)
        if phase == "launch" and phases.count("launch") == 3:
            claim = life._claim()
            assert isinstance(claim, NodeClaim)
            life.nodes.delete(claim)

    life._in = before
    life.run()
    end = "interrupted" if has_begun else "lost"
    assert [(run.command, run.status, run.end) for run in life.runs()] == [("apply", "ended", end)]
    assert len(life.tofu.tasks) == has_begun
    assert life.cloud.leftovers() == []
    assert life._claim() is None
