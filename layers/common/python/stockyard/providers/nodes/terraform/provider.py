"""Nodes that OpenTofu makes from a template: ``ports.nodes.NodeSource``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from stockyard.domain.nodes.declared_types import node_types_of
from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.records import CloudAccount, NodeProvider, Placement, Resource
from stockyard.domain.run_records import ProviderRun, RunAccount
from stockyard.domain.values.conditions import Condition
from stockyard.errors import NodeCouldNotBeProvisioned, VendorUnavailable
from stockyard.machines import node
from stockyard.machines.cloud_config import FirstBoot
from stockyard.machines.sources import PUBLIC, Sources
from stockyard.ports import Finding, Ledger, Outcome, Store, Tagged
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import (
    EnvironmentWork,
    Machine,
    NewNode,
    NodeWork,
    PlannedRun,
    Prepared,
    RunTimes,
    TemplateSource,
)
from stockyard.ports.nodes import NodeSource
from stockyard.ports.runs import NewRun, Runner, RunnerAccount, Runs
from stockyard.providers.nodes.terraform import credentials, environments, templates, variables
from stockyard.providers.nodes.terraform.accounts import (
    operator_account,
    operator_fault,
    runner_account,
    wants_operator,
)
from stockyard.providers.nodes.terraform.planning import planned_run, run_times
from stockyard.providers.nodes.terraform.repositories import Repositories
from stockyard.providers.nodes.terraform.running import (
    END_SECONDS,
    SPARE_SECONDS,
    STARTING_SECONDS,
    Running,
    RunWork,
    check_end,
    region_of,
)
from stockyard.providers.nodes.terraform.templates import Template

STATE = "terraform state"
"""Kind of a ledger line: a state that names what a template has made."""
NODE = "node"
APPLY, DESTROY, PLAN = "apply", "destroy", "plan"
PLAN_IS_NEW_SECONDS = 3600
"""Age up to which a plan tells how things are."""
_NO_PRICE = "Its nodes have no price in money, so node types with one come first. Set pricePerCostUnit."


@dataclass(frozen=True, slots=True)
class TerraformConfig:
    """Names and addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    api_url: str
    region: str
    sources: Sources = PUBLIC
    operator_runner: str = ""


class TerraformNodes(NodeSource):
    """Makes and removes nodes by runs of OpenTofu in an account of the tenant's."""

    compares = True
    makes_by_runs = True
    tells_stages = True

    def __init__(
        self,
        config: TerraformConfig,
        runner: Runner,
        runs_of: Callable[[str], Runs],
        store_of: Callable[[str], Store],
        repositories: Repositories | None = None,
    ) -> None:
        self._config, self._runner, self._runs_of, self._store_of = config, runner, runs_of, store_of
        self._repositories = repositories

    joins_overlay = True
    """See ``ports.nodes.JoinsOverlay``: what the template gives its machine as user data joins it."""

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """As declared."""
        return node_types_of(provider, built=True)

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The provider alone: what a template cannot have says nothing of others."""
        return f"provider/{provider.id}"

    def attestation(self, provider: NodeProvider) -> str:  # noqa: ARG002
        """A template may make a machine anywhere, so each has a token."""
        return TOKEN

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:  # noqa: ARG002
        """Whether it may use the operator's account, and its price: only a run reads a template."""
        fault = operator_fault(provider, self._config.operator_runner)
        findings = [] if fault is None else [Finding("/spec/runner/operator", fault)]
        if provider.price_per_cost_unit is None:
            findings.append(Finding("/spec", _NO_PRICE, warning=True))
        return findings

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:
        """See ``ports.nodes.LaunchesSlowly``. A run waits for its machine, and has time for its end."""
        spare = STARTING_SECONDS + 2 * END_SECONDS + SPARE_SECONDS
        longest = max(
            (each.timeout_seconds for each in templates.of_nodes(provider)), default=templates.TIMEOUT_SECONDS
        )
        stages = sum(template.timeout_seconds + spare for _, template in templates.stages_of(provider))
        limits = {"launch": longest + spare, "terminate": longest + spare, "register": 1800}
        return {**limits, "environment": stages} if stages else limits

    def template_fingerprint(self, provider: NodeProvider) -> str:
        """See ``ports.nodes.Compares``: what the document says, and the newest commits that are known."""
        return ",".join(dict.fromkeys(template.fingerprint for template in templates.of_nodes(provider)))

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """Apply the stages of the environment's template, one after the other."""
        running, outputs = self._running(work), environments.Outputs()
        for stage, template in templates.stages_of(work.provider):
            workspace = f"{work.environment.id}/{stage}"
            run = environments.accepted(running, work, workspace)
            if run is None:
                work.ledger.intend(STATE, workspace)
                first = outputs.by_stage.get(templates.INFRASTRUCTURE)
                outcome = running.step(self._of_environment(work, workspace, template, first))
                if isinstance(outcome, Outcome):
                    return outcome
                check_end(outcome)
                run = outcome
            outputs.add(stage, running.runs.result(run).get("outputs") or {})
        text = "The environment was applied." if outputs.by_stage else ""
        return Prepared(True, text, outputs=outputs.values, secret_outputs=frozenset(outputs.secret))

    def environment_conditions(self, work: EnvironmentWork) -> Sequence[Condition]:
        """See ``ports.nodes.TellsStages``."""
        return environments.conditions_of(self._running(work), work) if templates.stages_of(work.provider) else ()

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``. A template has one way to make a node, so the first option is it."""
        type_name, placement = _placed(work)
        workspace = _workspace(work)
        line = work.ledger.find(STATE, workspace) or work.ledger.intend(STATE, workspace)
        outcome = self._running(work).step(self._apply(work, type_name, placement))
        if isinstance(outcome, Outcome):
            return outcome
        check_end(outcome)
        if line.state != "made":
            work.ledger.made(line, workspace)
        facts = {"machine_id": workspace, "type": placement.type, "capacity_type": placement.capacity_type}
        return Outcome(True, "The template was applied.", facts={**facts, "zone": _zone(placement)})

    def look(self, work: NodeWork) -> Machine:
        """The machine as far as it is known: a template says nothing of a machine's life, so that it is gone is seen by
        the cluster's agent alone."""
        line = work.ledger.find(STATE, _workspace(work))
        if line is None or line.state != "made":
            return Machine("absent")
        return Machine("running", line.key, zone=_zone(work.claim.placement))

    def terminate(self, work: NodeWork) -> Outcome:
        """Destroy what the state names, by the task that was applied. A state that no run has touched starts none."""
        lines = [line for line in work.ledger.lines() if line.kind == STATE]
        pending = (
            self._destroyed(self._running(work), work.ledger, lines, partial(self._destroy, work)) if lines else None
        )
        return pending or Outcome(True, "What the template made is destroyed.")

    def clear(self, work: EnvironmentWork) -> Outcome:
        """Destroy the stages, the last first. Of a cluster that is being deleted the second stage goes with it where
        that fails."""
        lines = [line for line in reversed(work.ledger.lines()) if line.kind == STATE]
        destroy = partial(self._destroy_stage, work)
        unneeded = frozenset(
            {f"{work.environment.id}/{templates.KUBERNETES}"} if work.cluster.status == "deleting" else ()
        )
        pending = self._destroyed(self._running(work), work.ledger, lines, destroy, unneeded) if lines else None
        return pending or Outcome(True)

    def drift(self, work: NodeWork) -> str | None:
        """See ``ports.nodes.Compares``: what OpenTofu would change. ``VendorUnavailable`` while its plan runs."""
        type_name, placement = _placed(work)
        running = self._running(work)
        if running.runs.state(_workspace(work)) is None:
            return None
        planned = self._apply(work, type_name, placement)
        applied = running.runs.applied(planned.new.workspace) or {}
        secrets = tuple(applied.get("secrets", ()))
        new = replace(planned.new, name="drift", command=PLAN, makes=False, secrets=secrets)

        def task() -> Mapping[str, Any]:
            task = dict(planned.task() if planned.task is not None else {})
            return {**task, "variables": variables.as_applied(task["variables"], applied)}

        template = templates.of_type(work.provider, type_name)
        commit = template.head if template is not None else None
        outcome = running.anew(replace(planned, new=new, task=task), PLAN_IS_NEW_SECONDS, commit)
        if isinstance(outcome, Outcome):
            raise VendorUnavailable(outcome.message)
        check_end(outcome)
        result = running.runs.result(outcome)
        return str(result.get("summary") or "It differs.") if result.get("drifted") else None

    def run_times(self, provider: NodeProvider, type_name: str) -> RunTimes | None:
        """See ``ports.nodes.MakesByRuns``. Runs in the operator's account cost the tenant nothing."""
        return None if wants_operator(provider) else run_times(provider, type_name, self._runner.usd_a_minute)

    def planned_run(self, node: NewNode) -> PlannedRun:
        """See ``ports.nodes.MakesByRuns``."""
        return planned_run(node)

    def template_sources(self, provider: NodeProvider) -> Sequence[TemplateSource]:
        """See ``ports.nodes.FollowsTemplates``: branches and tags of repositories."""
        return templates.sources_of(provider)

    def newest(self, template: TemplateSource) -> str:
        """See ``ports.nodes.FollowsTemplates``: the commit, asked over git's smart HTTP."""
        if self._repositories is None:
            raise VendorUnavailable("Repositories are not followed here.")
        return self._repositories.commit_at(*templates.reference_of(template))

    def moved(self, work: NodeWork) -> str | None:
        """See ``ports.nodes.FollowsTemplates``."""
        template = templates.of_type(work.provider, _placed(work)[0])
        state = self._runs_of(work.tenant).state(_workspace(work))
        if template is None or template.moving_source is None or template.head is None or state is None:
            return None
        if state.commit in (None, template.head):
            return None
        return f"{template.moving_source.name} has moved from {str(state.commit)[:12]} to {template.head[:12]}."

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:  # noqa: ARG002
        """Nothing: what a template makes is known by its state, and that by the claim's ledger."""
        return ()

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:  # noqa: ARG002
        """See ``tagged``: there is nothing to remove here."""
        return False

    def _destroyed(
        self,
        running: Running,
        ledger: Ledger,
        lines: Sequence[Resource],
        destroy: Callable[[str], RunWork],
        dispensable: frozenset[str] = frozenset(),
    ) -> Outcome | None:
        """Destroy what the states of the lines name; what to wait for, None when nothing is left of them. Of a
        ``dispensable`` one a run that fails is the end, too."""
        for line in lines:
            remaining = (f"{STATE} {line.key}",)
            work = destroy(line.key)
            pending = None if _is_destroy(running.runs.current(line.key)) else running.end_others(line.key)
            if pending is not None:
                return replace(pending, remaining=remaining)
            state = running.runs.state(line.key)
            if state is not None and (state.is_touched or state.is_unsure):
                outcome = running.step(work)
                if isinstance(outcome, Outcome):
                    return replace(outcome, remaining=remaining)
                if line.key not in dispensable:
                    check_end(outcome)
            running.runs.forget(line.key)
            ledger.gone(line)
        return None

    def _apply(self, work: NodeWork, type_name: str, placement: Placement) -> RunWork:
        template = templates.of_type(work.provider, type_name)
        if template is None:
            raise NodeCouldNotBeProvisioned(f"Node type {type_name} has no template.")
        secrets = credentials.of_run(work.provider, work.claim.properties, template)

        def task() -> Mapping[str, Any]:
            variable = variables.of_node(work, type_name, placement, self._first_boot(work))
            return {
                **template.source(),
                **secrets.task,
                "variables": {"vcluster": variable},
                "timeout_seconds": template.timeout_seconds,
            }

        hidden = (work.machine_token,) if work.machine_token else ()
        new = replace(_new(work, _workspace(work), APPLY), secrets=hidden)
        return RunWork(new, template.timeout_seconds, task, secrets.secret_variables)

    def _destroy(self, work: NodeWork, workspace: str) -> RunWork:
        type_name, _ = _placed(work)
        template = templates.of_type(work.provider, type_name)
        secrets = credentials.of_run(work.provider, work.claim.properties, template)
        timeout = template.timeout_seconds if template is not None else templates.TIMEOUT_SECONDS
        return RunWork(_new(work, workspace, DESTROY), timeout, None, secrets.secret_variables)

    def _of_environment(
        self, work: EnvironmentWork, workspace: str, template: Template, first: Mapping[str, Any] | None
    ) -> RunWork:
        secrets = credentials.of_run(work.provider, work.environment.properties, template)

        def task() -> Mapping[str, Any]:
            return {
                **template.source(),
                **secrets.task,
                "variables": {"vcluster": variables.of_environment(work, first)},
                "timeout_seconds": template.timeout_seconds,
                **kubeconfig,
            }

        kubeconfig = environments.kubeconfig_of(work, workspace)
        fingerprint = template.stage_fingerprint({**work.provider.properties, **work.environment.properties})
        hidden = environments.secrets_in(kubeconfig.get("kubeconfig"))
        new = replace(_new(work, workspace, APPLY), fingerprint=fingerprint, secrets=hidden)
        return RunWork(new, template.timeout_seconds, task, secrets.secret_variables)

    def _destroy_stage(self, work: EnvironmentWork, workspace: str) -> RunWork:
        stages = dict(templates.stages_of(work.provider))
        template = stages.get(workspace.rpartition("/")[2])
        secrets = credentials.of_run(work.provider, work.environment.properties, template)
        timeout = template.timeout_seconds if template is not None else templates.TIMEOUT_SECONDS
        new, kubeconfig = _new(work, workspace, DESTROY), environments.kubeconfig_of(work, workspace)
        applied = self._runs_of(work.tenant).applied(workspace) if kubeconfig else None
        if applied is None:
            return RunWork(new, timeout, None, secrets.secret_variables)
        new = replace(new, secrets=environments.secrets_in(kubeconfig["kubeconfig"]))
        return RunWork(new, timeout, lambda: {**applied, **kubeconfig}, secrets.secret_variables)

    def _first_boot(self, work: NodeWork) -> FirstBoot | None:
        if work.cluster is None:
            return None
        return node.first_boot_by_token(self._config, work.cluster, work.claim.id, work.machine_token)

    def _account(self, work: NodeWork | EnvironmentWork) -> tuple[str, CloudAccount]:
        """Tenant and account of the runs."""
        if wants_operator(work.provider):
            return operator_account(self._store_of, work.provider, self._config.operator_runner)
        return work.tenant, runner_account(self._store_of(work.tenant), work.provider, work.account)

    def _running(self, work: NodeWork | EnvironmentWork) -> Running:
        return Running(self._runs_of(work.tenant), self._runner, partial(self._runner_account, work), work.now)

    def _runner_account(self, work: NodeWork | EnvironmentWork, recorded: RunAccount | None) -> RunnerAccount:
        """Account of runs: the one on record, else as the document says."""
        if recorded is None:
            tenant, account = self._account(work)
            return RunnerAccount(tenant, account, region_of(work.provider, account, self._config.region), work.session)
        kept_account = self._store_of(recorded.tenant).get(CloudAccount, recorded.number)
        if kept_account is None:
            raise NodeCouldNotBeProvisioned(
                f"The template was applied in cloud account {recorded.number}, which is not registered any more."
            )
        return RunnerAccount(recorded.tenant, kept_account, recorded.region, work.session)


def _new(work: NodeWork | EnvironmentWork, workspace: str, command: str) -> NewRun:
    is_node = isinstance(work, NodeWork)
    return NewRun(
        subject=work.claim.id if isinstance(work, NodeWork) else work.environment.id,
        operation_id=work.session,
        attempt=work.claim.attempt if isinstance(work, NodeWork) else 1,
        name=command if is_node else f"{workspace.rpartition('/')[2]}-{command}",
        phase=("launch" if command == APPLY else "terminate") if is_node else "environment",
        command=command,
        workspace=workspace,
        makes=True,
        task=None,
    )


def _zone(placement: Placement | None) -> str:
    return placement.zones[0] if placement is not None and placement.zones else ANY


def _workspace(work: NodeWork) -> str:
    return f"{work.claim.id}/{NODE}"


def _placed(work: NodeWork) -> tuple[str, Placement]:
    """The type by its bare name, and the placement."""
    placement = work.claim.placement
    if placement is None:
        raise NodeCouldNotBeProvisioned("The claim is not placed.")
    return placement.type.removeprefix(f"{work.provider.name}."), placement


def _is_destroy(run: ProviderRun | None) -> bool:
    return run is not None and run.command == DESTROY
