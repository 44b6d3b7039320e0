"""The work of clusters' phases: the driver's, and what is ours of a creation and a deletion. Each phase loads its own
work: a first request runs one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.records import Cluster, ClusterPacks, Operation
from stockyard.errors import ClusterCouldNotBeDeployed, InvalidInput
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.procedure import Phase
from stockyard.operations.clusters.cloud_work import MACHINE_PHASE, cloud_work
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, Fence, Loaded
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.run_phase import end_by, end_deletion
from stockyard.operations.engine.runner import Runner
from stockyard.operations.engine.step import Step
from stockyard.operations.services import Services
from stockyard.ports import Outcome, Write


class PhaseTimedOut(ClusterCouldNotBeDeployed):
    """A phase did not finish within its limit."""


def _ensure(services: Services, cluster: Cluster, fence: Fence[Cluster], phase: Phase) -> Outcome:
    if cluster.kept_until is not None:
        # A person resumes while the machine is kept that did not come up: another one takes its place.
        from stockyard.operations.engine.keep import end_kept

        outcome = end_kept(RUNNER, services, fence, cluster)
        return Outcome(False, outcome.message, wait_seconds=1 if outcome.done else outcome.wait_seconds)
    driver, work = cloud_work(services, cluster, phase.name, fence)
    if phase.machine:
        from stockyard.operations.machines.attest import issue_control_plane_token
        from stockyard.ports.clusters import TOKEN

        if driver.attestation(cluster) == TOKEN:
            work = replace(work, machine_token=issue_control_plane_token(services, cluster, fence))
    if phase.with_agent:
        from stockyard.operations.clusters.access.agent_installation import agent_documents

        work = replace(work, agent=agent_documents(services, cluster))
    outcome = driver.ensure(phase.name, work)
    if phase.moves_network and outcome.done:
        from stockyard.operations.node_claims import environments as node_environments

        node_environments.look_again(services, cluster)
    return outcome


def _console(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> str | None:
    if not lines_of(services, cluster.id, MACHINE_PHASE):
        return None
    driver, work = cloud_work(services, cluster, MACHINE_PHASE, fence)
    return driver.console(work)


def _remove(services: Services, cluster: Cluster, fence: Fence[Cluster], phase: Phase) -> Outcome:
    """The cloud is not asked where nothing was made. What a cluster's nodes made needs a network to stand in."""
    if not lines_of(services, cluster.id, None if phase.beyond_lines else phase.name):
        return Outcome(True, "Nothing was made.")
    driver, work = cloud_work(services, cluster, phase.name, fence)
    return driver.remove(phase.name, work)


def _deploy(services: Services, cluster: Cluster, _: Fence[Cluster]) -> Outcome:
    """POST /deploy with the settings of the reference. Skipped when the stage has no vdeployer."""
    if not services.deployer.configured:
        return Outcome(True, "This stage has no vdeployer.", facts={"skipped": "true"})
    from stockyard.operations.clusters.creation.deployment import deploy_settings

    settings = deploy_settings(services, cluster)
    services.deployer.deploy(cluster.client_id, settings, services.identity.service_token())
    return Outcome(True, "vdeployer has taken over.")


def _settle(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.clusters import nodes as cluster_nodes
    from stockyard.operations.engine.quiesce import quiesce

    outcome = quiesce(RUNNER, services, cluster)
    return cluster_nodes.release(services, cluster, fence.operation_id) if outcome.done else outcome


def _remove_client(services: Services, cluster: Cluster, _: Fence[Cluster]) -> Outcome:
    """Delete the Keycloak client, if it is this cluster's, and every secret."""
    from stockyard.operations import cluster_secrets

    services.identity.delete_client(client_id=cluster.client_id, owner=cluster.id)
    cluster_secrets.delete_all(services, cluster)
    return Outcome(True)


def _checks(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    """Check what may have come up since the request was checked. ``InvalidInput`` with what speaks against the change.

    Nothing speaks against the replacement of members that are lost or unhealthy, which begins by itself.
    """
    from stockyard.operations.clusters.creation.check import live_findings, of_change, refuse
    from stockyard.operations.clusters.creation.zone_users import zone_findings

    operation = services.store.get(Operation, fence.operation_id)
    if operation is None or operation.actor == WORKFLOW_ACTOR:
        return Outcome(True, "What heals the control plane is not refused for a setting.")
    driver, work = cloud_work(services, cluster, "checks", fence)
    findings = [*zone_findings(services, driver, work), *live_findings(driver, work)]
    try:
        refuse(of_change([*driver.validate(cluster, services.prices), *findings], operation.changes))
    except InvalidInput as refused:
        # An operation shows one text, and nobody the fields behind it.
        text = " ".join(f"{fault.pointer}: {fault.detail}" for fault in refused.errors)
        raise InvalidInput(text, errors=refused.errors) from refused
    return Outcome(True, "Nothing speaks against it.")


def _surplus(services: Services, cluster: Cluster, _: Fence[Cluster]) -> Outcome:
    from stockyard.operations.fleet.pools.follow import release_surplus

    return release_surplus(services, cluster)


def _pools(services: Services, cluster: Cluster, _: Fence[Cluster]) -> Outcome:
    from stockyard.operations.fleet.pools.follow import follow_settings

    return follow_settings(services, cluster)


def _pools_replaced(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.fleet.disruption.replacing import pools_replaced

    operation = services.store.get(Operation, fence.operation_id)
    return pools_replaced(services, cluster, operation) if operation is not None else Outcome(False)


def _profile(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.profiles.clusters import packs_work
    from stockyard.operations.profiles.phase import awaited_kinds, run_profile

    if services.store.get(ClusterPacks, cluster.id) is None:
        return Outcome(True, "The cluster has no profile.", facts={"skipped": "true"})
    operation = services.store.get(Operation, fence.operation_id)
    if operation is None:
        return Outcome(False)
    driver, work = cloud_work(services, cluster, "profile", fence)
    return run_profile(services, cluster, driver, packs_work(services, work), awaited_kinds(operation))


def _changed(services: Services, fence: Fence[Cluster], loaded: Loaded[Cluster], outcome: Outcome) -> Outcome:
    """The change is done. What waits for its turn follows, then tags that were changed meanwhile."""
    end_by(lambda c, o, _, now: MOVES.end_change(c, o, o.phases[-1].name, now))(services, fence, loaded, outcome)
    start_following(services, fence.subject_id)
    return outcome


def _members(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.clusters.members.members import ensure_members

    driver, work = cloud_work(services, cluster, "members", fence)
    return ensure_members(services, driver, work)


def _restore(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.clusters.snapshots.restoring import restore_members
    from stockyard.operations.clusters.snapshots.snapshots import IDENTITY

    # What is known of the cluster's role is with the lines of that phase.
    driver, work = cloud_work(services, cluster, IDENTITY, fence)
    return restore_members(services, driver, work, fence.operation_id)


def start_following(services: Services, cluster_id: str) -> str | None:
    """Begin what waits until nothing else works on the cluster; what has begun, None for nothing."""
    from stockyard.operations.clusters.changes.queue import begin_next
    from stockyard.operations.clusters.changes.retag import start_if_due
    from stockyard.operations.clusters.healing.completion import complete_members

    if complete_members(services, cluster_id):
        return "completing its control plane"
    if begin_next(services, cluster_id):
        return "changing"
    cluster = services.store.get(Cluster, cluster_id)
    return "retagging" if cluster is not None and start_if_due(services, cluster) else None


def _retagged(services: Services, fence: Fence[Cluster], loaded: Loaded[Cluster], outcome: Outcome) -> Outcome:
    from stockyard.operations.clusters.changes.retag import end_retag

    end = end_retag(services, fence, loaded, outcome)
    if end.done:
        start_following(services, fence.subject_id)
    return end


def _retag(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.clusters.changes.retag import retag

    driver, work = cloud_work(services, cluster, "tags", fence)
    return retag(services, driver, work)


def _complete(services: Services, fence: Fence[Cluster], loaded: Loaded[Cluster], outcome: Outcome) -> Outcome:
    """The cluster is ready. Tags that were changed meanwhile follow at once, or else when the sweep comes by."""
    end_by(lambda c, o, _, now: MOVES.become_ready(c, o, "complete", now))(services, fence, loaded, outcome)
    start_following(services, fence.subject_id)
    return outcome


def _approval(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.clusters.changes.approval import await_approval

    return await_approval(services, cluster, fence)


def _version(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    from stockyard.operations.clusters.changes.skew import await_version

    return await_version(services, cluster, fence)


def _removal(services: Services, cluster: Cluster) -> Sequence[Write]:
    from stockyard.operations.clusters.removal.record import removal

    return removal(services, cluster)


def _await_report(services: Services, fence: Fence[Cluster], task_token: str) -> Step:
    from stockyard.operations.clusters.await_report import await_report

    return await_report(services, fence, task_token)


def _last_words(services: Services, cluster: Cluster) -> str | None:
    from stockyard.operations.machines.boot import last_words

    return last_words(services, cluster)


RUNNER: Runner[Cluster] = Runner(
    Cluster,
    MOVES,
    remove=_remove,
    ensure=_ensure,
    actions={
        "deploy": _deploy,
        "retag": _retag,
        "settle": _settle,
        "client": _remove_client,
        "checks": _checks,
        "surplus": _surplus,
        "pools": _pools,
        "pools_replaced": _pools_replaced,
        "approval": _approval,
        "profile": _profile,
        "members": _members,
        "restore": _restore,
        "version_skew": _version,
    },
    ends={
        "complete": _complete,
        "retag": _retagged,
        "changed": _changed,
        "forget": end_deletion(MOVES, _removal),
    },
    fact_fields=frozenset(
        {"endpoint", "machine_endpoint", "instance_id", "private_address", "certificate_authority", "place", "bastion"}
    ),
    timed_out=PhaseTimedOut,
    awaits={"report": _await_report},
    last_words=_last_words,
    console=_console,
    driver=lambda cluster: cluster.driver,
)
"""How operations on clusters are run."""
