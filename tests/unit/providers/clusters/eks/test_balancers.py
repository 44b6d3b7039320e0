"""Load balancers of Services carry our tag: by a policy that adds the annotation, or by one that says that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stockyard.errors import VendorNotFound
from stockyard.providers.clusters.eks import balancers
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes

PAIR = "stockyard:installation=inst-1"


def policies(api: MemoryKubernetes) -> dict[str, Mapping[str, Any]]:
    return {kind: document for (kind, _, name), document in api.objects.items() if name == balancers.NAME}


def test_each_service_gets_the_annotation(eks: Any, run: Callable[[str], None], api: MemoryKubernetes) -> None:
    run("objects")
    applied = policies(api)
    assert set(applied) == {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    spec = applied["MutatingAdmissionPolicy"]["spec"]
    assert spec["failurePolicy"] == "Ignore", "no Service waits for it"
    (mutation,) = spec["mutations"]
    expression = mutation["jsonPatch"]["expression"]
    assert expression.count(f"'{PAIR}'") == 1
    assert f"+ ',{PAIR}'" in expression, "what somebody has written there stays"
    assert expression.count("JSONPatch{op: 'add'") == 2, "annotations, where there are none, and ours"
    conditions = [condition["expression"] for condition in spec["matchConditions"]]
    assert conditions[0] == "object.spec.type == 'LoadBalancer'"
    assert f"'{PAIR}' in " in conditions[1], "one that has it is left alone"
    assert applied["MutatingAdmissionPolicyBinding"]["spec"] == {"policyName": balancers.NAME}


def test_a_cluster_without_such_policies_warns(
    eks: Any, run: Callable[[str], None], api: MemoryKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = api.apply

    def apply(document: Mapping[str, Any]) -> Mapping[str, Any]:
        if document["kind"].startswith("Mutating"):
            raise VendorNotFound("the cluster serves no MutatingAdmissionPolicy", code="NotServed")
        return original(document)

    monkeypatch.setattr(api, "apply", apply)
    run("objects")
    applied = policies(api)
    assert set(applied) == {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert applied["ValidatingAdmissionPolicyBinding"]["spec"]["validationActions"] == ["Warn"]
    (validation,) = applied["ValidatingAdmissionPolicy"]["spec"]["validations"]
    assert validation["message"].endswith(f"{balancers.ANNOTATION}: {PAIR}")
