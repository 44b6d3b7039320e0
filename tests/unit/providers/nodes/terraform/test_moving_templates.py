"""Templates of repositories that move: over smart HTTP to a claim that has drifted, and with a real OpenTofu."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from local.opentofu.real.build import TOFU
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import VendorUnavailable
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.operations.node_claims.comparisons import compare_machine, to_compare
from stockyard.operations.node_providers.template_moves import follow_all
from stockyard.providers.addresses import Guard
from stockyard.providers.nodes.terraform import templates
from stockyard.providers.nodes.terraform.repositories import Repositories
from stockyard.providers.nodes.terraform.stockyard_run import __main__ as program
from tests.harness.runs.git_server import GitServer, serving
from tests.harness.worlds.run_api import TOKEN, RunApi
from tests.harness.worlds.run_api import serving as serving_run
from tests.unit.providers.nodes.terraform.test_repositories import KIND, OPEN, listed
from tests.workflows.machine_life import CLAIM
from tests.workflows.terraform_life import TerraformLife

OLD, NEW = "a" * 40, "b" * 40
REPOSITORY = "https://git.example/nodes.git"


class MovingLife(TerraformLife):
    """A life that stops when the node is there. Its template is on a branch, which is at ``head``."""

    template: ClassVar[dict[str, Any]] = {"git": {"repository": REPOSITORY, "branch": "main"}}
    head = OLD

    def __init__(self) -> None:
        answer = lambda _: httpx.Response(200, headers=KIND, content=listed(f"{self.head} refs/heads/main"))  # noqa: E731
        self.repositories = Repositories(OPEN, httpx.MockTransport(answer))
        super().__init__()

    def _delete(self) -> None:
        """Nothing is deleted."""

    def _clear(self) -> None:
        """Nothing is cleared."""

    def follow(self) -> None:
        """Look where the branch is, ten minutes later."""
        self.nodes.hours(1 / 6)
        follow_all(self.nodes.services)

    def compared(self) -> NodeClaim:
        """The claim after what the sweep would compare, with the time that a plan takes."""
        for _ in range(2):
            services = self.nodes.services
            (provider,) = services.store.list(NodeProvider).items
            claim = services.store.get(NodeClaim, CLAIM)
            assert claim is not None
            for due, mark in to_compare(services, [claim], {provider.id: provider}):
                try:
                    compare_machine(services, due.id, mark)
                except VendorUnavailable:
                    self.nodes.clock.advance(600)
                    self.memory_runner.play()
        claim = self.nodes.services.store.get(NodeClaim, CLAIM)
        assert claim is not None
        return claim


def test_a_branch_that_moves_is_a_reason_of_drift_where_the_plan_differs() -> None:
    life = MovingLife()
    life.follow()
    life.tofu.commit = OLD
    assert life.run() == "Available"
    assert life.tofu.tasks[0]["git"]["commit"] == OLD, "nodes are made from the commit that was seen"
    assert not is_drifted(life.compared())
    life.head = life.tofu.commit = NEW
    assert not is_drifted(life.compared()), "nobody has looked yet"
    life.follow()
    assert not is_drifted(life.compared()), "a commit by which the plan changes nothing"
    planned = life.tofu.tasks[-1]
    assert (planned["command"], planned["git"]["commit"]) == ("plan", NEW)
    plans = len(life.runs())
    life.compared()
    assert len(life.runs()) == plans, "each commit is planned once"
    life.tofu.changed.add("one")
    life.head = life.tofu.commit = "c" * 40
    life.follow()
    claim = life.compared()
    assert is_drifted(claim)
    (condition,) = (each for each in claim.conditions if each.type == "NotDrifted")
    assert (condition.reason, claim.drift_reasons) == ("TemplateMoved", ("TemplateMoved",))
    moved = f"main of {REPOSITORY} has moved from {OLD[:12]} to {'c' * 12}. Plan: 1 to add."
    assert condition.message == f"Changed since the launch: where the template stands. {moved}"
    life.nodes.hours(25)
    life.tofu.changed.clear()
    assert not is_drifted(life.compared()), "somebody has moved it back in effect"


def test_a_plan_that_differs_at_the_same_commit_is_of_the_machine() -> None:
    life = MovingLife()
    life.follow()
    life.tofu.commit = OLD
    life.run()
    life.tofu.changed.add("one")
    assert life.compared().drift_reasons == ("MachineChanged",)


def provider_of(git: Mapping[str, Any], revisions: Mapping[str, str]) -> NodeProvider:
    block = {"nodeTemplate": {"git": git}, "nodeTypes": [{"name": "small"}]}
    moment = "2026-01-01T00:00:00Z"
    spec = {"terraform": block}
    return NodeProvider("npr_1", "tofu", "terraform", spec, moment, moment, template_revisions=dict(revisions))


def test_what_moves_and_in_which_interval() -> None:
    for git, expected in (
        ({"branch": "main"}, ("refs/heads/main", 300, None)),
        ({"tag": "v1", "fetchInterval": "1h"}, ("refs/tags/v1", 3600, None)),
        ({"fetchInterval": "1s"}, ("HEAD", 60, None)),
        ({"commit": OLD}, None),
    ):
        sources = templates.sources_of(provider_of({"repository": REPOSITORY, **git}, {}))
        actual = [(templates.reference_of(source), source.interval_seconds, source.blocker) for source in sources]
        assert actual == ([] if expected is None else [((REPOSITORY, expected[0]), *expected[1:])]), git
    secret = {"repository": REPOSITORY, "branch": "main", "credentials": {"name": "git"}}
    (source,) = templates.sources_of(provider_of(secret, {}))
    assert source.blocker is not None


RESOURCE = 'variable "vcluster" { type = any }\nresource "terraform_data" "node" { triggers_replace = ["SIZE"] }\n'


@pytest.mark.skipif(bool(TOFU.missing()), reason=TOFU.missing() or "built")
def test_real_runs_of_a_branch_that_moves_and_of_a_tag(tmp_path: Path) -> None:
    def files(size: str) -> dict[str, str]:
        return {"small/main.tf": RESOURCE.replace("SIZE", size), "main.tf": "broken {"}

    def run(command: str, git: Mapping[str, Any], revisions: Mapping[str, str], commit: str | None = None) -> Any:
        template = templates.of_type(provider_of(git, revisions), "small")
        assert template is not None
        api.task = {**common, **template.source(), "command": command, "commit": commit}
        api.run += 1
        assert program.main(environment) == 0
        end = api.ends[-1]
        assert end["end"] == "done", api.lines
        return end["commit"], (end["result"] or {}).get("drifted")

    with serving(GitServer(tmp_path)) as server, serving_run(RunApi({})) as api:
        variables = {"STOCKYARD_RUN_URL": api.url, "STOCKYARD_RUN_TOKEN": TOKEN, "STOCKYARD_TOFU": str(TOFU.path)}
        environment = {"PATH": os.environ["PATH"], **variables}
        nothing: dict[str, Any] = {"variables": {"vcluster": {}}, "environment": {}, "secrets": []}
        common = {**nothing, "passphrase": "a" * 64, "timeout_seconds": 600}
        first = server.commit("nodes", files("1"), tag="v1")
        repositories = Repositories(Guard(stand_ins=frozenset({server.url.removeprefix("http://")})))
        git_source = {"repository": f"{server.url}/nodes.git", "subPath": "small"}
        branch = {**git_source, "branch": "main"}
        (watched,) = templates.sources_of(provider_of(branch, {}))

        def head() -> dict[str, str]:
            return {watched.key: repositories.commit_at(*templates.reference_of(watched))}

        before = head()
        assert run("apply", branch, before) == (first, None)
        second = server.commit("nodes", files("2"))
        assert run("plan", branch, before) == (first, False), "the commit that was seen, wherever the branch is"
        assert head() != before
        assert run("plan", branch, head()) == (second, True)
        assert run("validate", {**git_source, "tag": "v1"}, {}) == (first, None)
        assert run("destroy", branch, {}, first) == (first, None), "what was applied, not the newest"
