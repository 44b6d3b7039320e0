"""Contents of packs, and the rights with which they are applied."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from stockyard.domain.profiles.pack_rights import (
    removal_fault,
    rights_faults,
    secret_faults,
    settled_rights,
    stored_choices,
)
from stockyard.domain.values.rights import ADMIN, OPERATOR
from tests.harness.operators_ways import OPEN, PODS, WAYS, object_of, pod, workload

VARIABLES = [{"name": "n", "type": "number"}, {"name": "mode", "type": "string", "regex": "a|b"}]
FREE = {"name": "image", "type": "string"}


def test_each_way_to_all_rights_is_refused_when_it_is_chosen() -> None:
    for name, item in WAYS.items():
        # whether a namespace is open is known in the cluster alone
        if name != "a namespace that nobody has opened":
            assert list(rights_faults(item, OPERATOR)), name
    assert list(rights_faults(WAYS["a binding of oneself to all rights"], ADMIN)) == []


def test_pods_of_an_operators_pack_are_restricted_whatever_makes_them() -> None:
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        assert list(rights_faults(workload(kind, "a", OPEN, pod()), OPERATOR)) == []
        for name, spec in PODS.items():
            item = workload(kind, "a", OPEN, spec)
            assert all("spec.template" in fault for fault in rights_faults(item, OPERATOR)), name
            assert list(rights_faults(item, OPERATOR)), name
            assert list(rights_faults(item, ADMIN)) == [], name
    job = {"template": {"spec": PODS["privileged"]}}
    items = {
        "spec.template.spec.containers[0].securityContext.privileged": object_of(
            "batch/v1", "Job", "a", OPEN, spec=job
        ),
        "spec.jobTemplate.spec.template.spec.containers[0].securityContext.privileged": object_of(
            "batch/v1", "CronJob", "a", OPEN, spec={"jobTemplate": {"spec": job}}
        ),
        "spec.containers[0].securityContext.privileged": object_of("v1", "Pod", "a", OPEN, spec=PODS["privileged"]),
    }
    for path, item in items.items():
        assert any(fault.startswith(path) for fault in rights_faults(item, OPERATOR))


def test_what_has_another_shape_than_a_pod_is_refused() -> None:
    shapes: list[Any] = [
        None,
        [],
        "x",
        {"containers": {}},
        pod(volumes={}),
        pod(securityContext="x"),
        {"containers": [3]},
    ]
    for spec in shapes:
        assert list(rights_faults(workload("Deployment", "a", OPEN, spec), OPERATOR)), spec


def test_the_agents_own_objects_are_nobodys_to_change() -> None:
    names = ("an end of the agent's policy", "other code of the agent", "another image of the agent")
    items = [WAYS[name] for name in (*names, "an account of packs")]
    rbac, subject = (
        "rbac.authorization.k8s.io/v1",
        {"kind": "ServiceAccount", "name": "a", "namespace": "stockyard-system"},
    )
    items += [
        object_of("v1", "Namespace", "stockyard-system"),
        object_of("v1", "ConfigMap", "a", OPEN, meta={"labels": {"app.kubernetes.io/name": "stockyard-agent"}}),
        object_of(rbac, "Role", "stockyard-join", "kube-system"),
        object_of(rbac, "ClusterRoleBinding", "wide", subjects=[{"kind": "User", "name": "ann"}, subject]),
        *(
            object_of(rbac, "ClusterRoleBinding", "wide", subjects=[{"kind": "Group", "name": name}])
            for name in ("stockyard:packs:operators", "system:serviceaccounts:stockyard-system")
        ),
    ]
    for item in items:
        assert list(rights_faults(item, ADMIN)), item


def test_other_ways_of_an_operator() -> None:
    for item in (
        object_of("v1", "Service", "a", OPEN, spec={"externalIPs": ["192.0.2.1"]}),
        object_of("v1", "ConfigMap", "a", OPEN, meta={"ownerReferences": [{}]}),
        object_of("example.org/v1", "Deployment", "a", OPEN),
        workload("Deployment", "a", OPEN, pod(priorityClassName="system-node-critical")),
    ):
        assert len(list(rights_faults(item, OPERATOR))) == 1, item


def test_an_operators_choice_has_an_administrators_rights_where_one_has_allowed_it() -> None:
    choice: dict[str, Any] = {"id": "cpr_1", "version": "1.0.0", "variables": {"n": 1, "mode": "a"}, "pack_values": {}}
    by_admin = {**choice, "rights": ADMIN}
    image = {**choice, "variables": {"image": "example.org/mine"}}
    values = {**choice, "pack_values": {"net": {"image": "example.org/mine"}}}
    current = [{**values, "rights": ADMIN}]
    rows: list[tuple[dict[str, Any], str, bool, list[dict[str, Any]], str]] = [
        (choice, ADMIN, False, [], ADMIN),
        (choice, OPERATOR, True, [], OPERATOR),
        (by_admin, OPERATOR, True, [], ADMIN),
        (by_admin, OPERATOR, False, [], OPERATOR),
        (by_admin, ADMIN, False, [], ADMIN),
        (image, ADMIN, True, [], OPERATOR),
        (values, ADMIN, True, [], OPERATOR),
        (values, OPERATOR, True, current, ADMIN),
        ({**values, "version": "1.0.1"}, OPERATOR, True, current, OPERATOR),
        (values, OPERATOR, True, [{**values, "rights": OPERATOR}], OPERATOR),
    ]
    for asked_for, version_rights, is_named, before, expected in rows:
        declared = [*VARIABLES, FREE]
        settled = settled_rights(asked_for, version_rights, declared, before, is_named=is_named)
        assert settled == expected, (asked_for, version_rights, is_named)


def test_choices_of_an_earlier_release_were_applied_with_all_rights() -> None:
    assert [choice["rights"] for choice in stored_choices([{"name": "a"}, {"name": "b", "rights": OPERATOR}])] == [
        ADMIN,
        OPERATOR,
    ]


def test_an_operator_takes_away_what_an_operator_may_bring() -> None:
    assert removal_fault("ConfigMap", "v1", OPEN, OPERATOR) is None
    assert removal_fault("ConfigMap", "v1", "kube-system", OPERATOR) is not None
    assert removal_fault("ClusterRole", "rbac.authorization.k8s.io/v1", "", OPERATOR) is not None
    assert removal_fault("ClusterRole", "rbac.authorization.k8s.io/v1", "", ADMIN) is None


def test_a_secret_with_values_stands_in_no_version() -> None:
    assert list(secret_faults(object_of("v1", "Secret", "a", OPEN))) == []
    for name in ("data", "stringData"):
        (fault,) = secret_faults(object_of("v1", "Secret", "a", OPEN, **{name: {"password": "hunter2"}}))
        assert fault.startswith(f"{name}: ")
        assert "hunter2" not in fault


VALUES: list[Any] = [None, True, 0, "", "ALL", [], {}, [[]], [{}], [None], {"a": {}}, {"type": []}, {"name": {}}]


def paths_of(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value below the tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from paths_of(value, (*path, key))


def changed(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(tree)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return result


def test_objects_of_any_shape_are_judged_without_a_fault_of_ours() -> None:
    security = [workload("Deployment", "a", OPEN, spec) for spec in PODS.values()]
    subjects = object_of("rbac.authorization.k8s.io/v1", "RoleBinding", "a", OPEN, subjects=[{"namespace": "a"}])
    for item in (*WAYS.values(), *security, subjects):
        for path in paths_of(item):
            # what an object has at least is checked before
            if path[0] in ("apiVersion", "kind") or path in (
                ("metadata",),
                ("metadata", "name"),
                ("metadata", "namespace"),
            ):
                continue
            for value in VALUES:
                mutated = changed(item, path, value)
                for rights in (ADMIN, OPERATOR):
                    assert all(isinstance(fault, str) for fault in rights_faults(mutated, rights)), (path, value)
