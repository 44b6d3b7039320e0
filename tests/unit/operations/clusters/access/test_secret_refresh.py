"""Secrets with kubeconfigs that agents keep: who may ask, where they stand, what is read and written meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from benchmarks import cost
from stockyard.domain.clusters.change import ClusterChange, SecretChoice, SecretRequest
from stockyard.domain.records import Cluster, Fact
from stockyard.domain.values.rights import ADMIN as ADMIN_RIGHTS
from stockyard.domain.values.rights import OPERATOR as OPERATOR_RIGHTS
from stockyard.errors import InvalidInput, VendorRefused
from stockyard.operations.clusters.access.secret_refresh import refreshed
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.clusters.kept_secrets import look_at_secret
from stockyard.operations.listing import every
from stockyard.operations.machines.observe import KEPT_SECRETS, observe
from stockyard.ports import Remove
from tests.unit.operations.conftest import World
from tests.unit.operations.engine.test_ledger import Counting
from tests.unit.operations.minting import Minting

CLIENT = "client:agent"
NAME = "demo-kubeconfig-1a2b3"


@pytest.fixture
def minting(world: World) -> Minting:
    return Minting(world)


@pytest.fixture
def holder(minting: Minting) -> Cluster:
    """Another ready cluster of the tenant."""
    return minting.change(minting.world.create("management"), status="ready")


def current(minting: Minting) -> Cluster:
    cluster = minting.services.store.get(Cluster, minting.cluster.id)
    assert cluster is not None
    return cluster


def wish(minting: Minting, choice: SecretChoice | None, rights: str = OPERATOR_RIGHTS) -> Cluster:
    change = ClusterChange(secret=SecretRequest(choice), rights=rights)
    cluster = current(minting)
    return change_cluster(minting.services, cluster.id, cluster.version, change, actor="user:ann", request_id="r")[0]


def ask(minting: Minting, holder: Cluster, *results: Mapping[str, Any], refresh: bool = True) -> dict[str, Any]:
    return refreshed(minting.services, holder, results, CLIENT, refresh=refresh)


def facts(minting: Minting, holder: Cluster) -> Sequence[Fact]:
    return list(every(minting.services.store, Fact, f"{holder.id}/{KEPT_SECRETS}-"))


def conditions(minting: Minting) -> dict[str, tuple[str, str]]:
    return {
        each.type: (each.status, each.message)
        for each in current(minting).conditions
        if each.type == "KubeconfigSecretWritten"
    }


def post(minting: Minting, cluster: Cluster) -> bool:
    """Whether an agent's post is answered that there are Secrets to keep."""
    observation = {
        "sequence": 1, "observed_at": minting.services.now(), "agent_version": "1", "kubernetes_version": "v1.36.0",
        "ca_hash": "sha256:" + "a" * 64, "nodes": [], "results": [], "pods": None,
    }  # fmt: skip
    return observe(minting.services, lambda _: [], b"k" * 32, cluster, observation).kubeconfig_secrets


def test_a_secret_of_the_cluster_itself_has_a_new_token_in_each_answer(minting: Minting) -> None:
    assert not post(minting, current(minting))
    cluster = wish(minting, SecretChoice())
    assert cluster.kubeconfig_secret == {
        "cluster_id": cluster.id, "cluster": "demo", "namespace": "default", "role": "operator",
    }  # fmt: skip
    assert post(minting, cluster)
    answers = [ask(minting, cluster) for _ in range(2)]
    (first,), (second,) = (answer["secrets"] for answer in answers)
    assert (first["metadata"]["name"], first["metadata"]["namespace"]) == (NAME, "default")
    assert first["data"] != second["data"]
    assert (answers[0]["removed"], answers[0]["interval_seconds"]) == ([], 240)
    assert [role for _, role in minting.driver.mints] == ["operator", "operator"]
    assert ask(minting, cluster, refresh=False)["secrets"] == []
    assert len(minting.driver.mints) == 2


def test_make_cost_has_the_reads_of_a_refresh_and_a_post_takes_no_more(minting: Minting) -> None:
    cluster, store = current(minting), Counting(minting.services.store)
    minting.services = replace(minting.services, store=store)

    def calls(of: Callable[[Cluster], object], holder: Cluster) -> Counter[str]:
        of(holder)
        store.calls.clear()
        of(holder)
        return Counter(store.calls)

    before = calls(partial(post, minting), cluster)
    cluster = wish(minting, SecretChoice())
    assert calls(partial(post, minting), cluster) == before
    ask(minting, cluster, {"namespace": "default", "name": NAME, "status": "written", "message": ""})
    refresh = calls(partial(ask, minting), cluster)
    writes = refresh.pop("commit", 0)
    # The route itself reads the cluster that the agent is of.
    assert (refresh.total() + 1, writes) == (cost.SECRET_READS, cost.SECRET_WRITES)


def test_it_stands_in_the_cluster_that_was_named(minting: Minting, holder: Cluster) -> None:
    wish(minting, SecretChoice("management", "platform", "viewer"))
    assert (post(minting, holder), post(minting, current(minting))) == (True, False)
    (secret,) = ask(minting, holder)["secrets"]
    assert secret["metadata"]["namespace"] == "platform"
    assert ask(minting, current(minting))["secrets"] == []
    # Asked for elsewhere, it leaves where it was: the agent there says when it has gone.
    wish(minting, SecretChoice(None, "platform"))
    reference = {"namespace": "platform", "name": NAME}
    assert ask(minting, holder)["removed"] == [reference]
    assert ask(minting, holder, {**reference, "status": "failed", "message": "no"})["removed"] == [reference]
    assert ask(minting, holder, {**reference, "status": "removed", "message": ""})["removed"] == []
    assert facts(minting, holder) == []
    assert not post(minting, holder)


@pytest.mark.parametrize("end", ["no longer wanted", "deleting", "gone"])
def test_what_nobody_asks_for_any_more_is_removed(minting: Minting, holder: Cluster, end: str) -> None:
    cluster = wish(minting, SecretChoice("management"))
    if end == "no longer wanted":
        wish(minting, None)
    elif end == "deleting":
        minting.change(cluster, status="deleting")
    else:
        minting.services.store.commit(Remove(Cluster, cluster.id))
    answer = ask(minting, holder)
    assert (answer["secrets"], answer["removed"]) == ([], [{"namespace": "default", "name": NAME}])


def test_the_cluster_says_what_became_of_its_secret_and_only_when_it_is_news(minting: Minting) -> None:
    cluster = wish(minting, SecretChoice())
    reference = {"namespace": "default", "name": NAME}
    failed = {**reference, "status": "failed", "message": 'namespaces "default" not found'}
    for result, status, words in (
        (failed, "False", "not found"),
        (
            {**reference, "status": "written", "message": ""},
            "True",
            "kept fresh in the namespace default of cluster demo",
        ),
    ):
        ask(minting, cluster, result, refresh=False)
        status_now, message = conditions(minting)["KubeconfigSecretWritten"]
        assert (status_now, words in message) == (status, True)
        before = minting.items()
        ask(minting, cluster, result)
        assert minting.items() == before
    minting.driver.error = VendorRefused("no", hint="The role is gone.")
    ask(minting, cluster)
    assert "The role is gone." in conditions(minting)["KubeconfigSecretWritten"][1]
    wish(minting, None)
    assert conditions(minting) == {}


def test_nothing_is_asked_of_a_cluster_that_is_not_ready(minting: Minting) -> None:
    cluster = minting.change(wish(minting, SecretChoice()), status="failed")
    assert ask(minting, cluster)["secrets"] == []
    assert minting.driver.mints == []


def test_who_may_ask_for_what(minting: Minting, world: World) -> None:
    for choice, pointer in (
        (SecretChoice(role="admin"), "/kubeconfig_secret/role"),
        (SecretChoice("nowhere"), "/kubeconfig_secret/cluster"),
    ):
        with pytest.raises(InvalidInput) as refused:
            wish(minting, choice)
        assert [fault.pointer for fault in refused.value.errors] == [pointer]
    cluster = wish(minting, SecretChoice(role="admin"), ADMIN_RIGHTS)
    assert cluster.kubeconfig_secret["role"] == "admin"
    assert wish(minting, SecretChoice(role="admin")).kubeconfig_secret == cluster.kubeconfig_secret
    # People log in to clusters of any other driver: none has such a token.
    with pytest.raises(InvalidInput) as refused:
        create_cluster(world.services, world.new_cluster("other", kubeconfig_secret=SecretChoice()), "user:ann")
    assert [fault.pointer for fault in refused.value.errors] == ["/kubeconfig_secret"]


def test_a_fact_that_went_while_somebody_asked_is_made_again(minting: Minting) -> None:
    cluster = current(minting)
    assert look_at_secret(minting.services, cluster) is None
    cluster = wish(minting, SecretChoice())
    assert look_at_secret(minting.services, cluster) is None
    (fact,) = facts(minting, cluster)
    minting.services.store.commit(Remove(Fact, fact.id))
    assert look_at_secret(minting.services, cluster) == "asked for its Secret"
    assert [each.value for each in facts(minting, cluster)] == [fact.value]
