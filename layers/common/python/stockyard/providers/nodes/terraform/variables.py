"""The variable ``vcluster`` of templates: its published fields, from the claim, its cluster and its provider."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from stockyard.domain.nodes.declared_types import declared_type
from stockyard.domain.nodes.node_types import ANY, parse_property
from stockyard.domain.nodes.properties import select_values, written
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider, Placement
from stockyard.domain.values.requirements import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_TYPE,
    REGION,
    ZONE,
    Requirements,
)
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.machines.cloud_config import FirstBoot
from stockyard.ports.node_work import EnvironmentWork, NewNode, NodeWork
from stockyard.providers.nodes.terraform.templates import INFRASTRUCTURE, KUBERNETES

NAMESPACE = "p-default"
"""The namespace of clusters and claims, which the published form has; here tenants are apart otherwise."""
_SHORT = {REGION: "region", ZONE: "zone", INSTANCE_TYPE: "instance-type"}
"""Labels that templates also read by a short name."""


PLANNED_USER_DATA = "#!/bin/sh\n# Stockyard writes the user data of a machine when the machine is made.\n"
"""User data of a run that is only planned: the real one has a secret of the machine."""


def of_node(work: NodeWork, type_name: str, placement: Placement, first_boot: FirstBoot | None) -> dict[str, Any]:
    """``vcluster`` for the template of a node. ``NodeCouldNotBeProvisioned`` for a property that stays open."""
    user_data = first_boot.script() if first_boot is not None else ""
    packed = first_boot.cloud_config() if first_boot is not None else b""
    node = NewNode(work.claim, work.provider, work.cluster, work.environment)
    return _of_node(node, type_name, placement, (user_data, packed), work.secret_outputs())


def of_new_node(node: NewNode, type_name: str, placement: Placement) -> dict[str, Any]:
    """``vcluster`` for the template of a node that is only planned: without the secret outputs of its environment, and
    with user data that joins no cluster. Raises as :func:`of_node` does."""
    user_data = PLANNED_USER_DATA if node.cluster is not None else ""
    return _of_node(node, type_name, placement, (user_data, user_data.encode()), {})


def _of_node(
    node: NewNode,
    type_name: str,
    placement: Placement,
    user_data: tuple[str, bytes],
    secret_outputs: Mapping[str, Any],
) -> dict[str, Any]:
    """Variables of a node; ``user_data`` is the script, and the document that is passed in base64."""
    claim = node.claim
    properties = _properties(node.provider, type_name, claim)
    return {
        "name": claim.name,
        "namespace": NAMESPACE,
        "userData": user_data[0],
        "userDataBase64": base64.b64encode(user_data[1]).decode(),
        "requirements": requirements_of(claim, placement, properties),
        "properties": properties,
        "instance": _instance(node.cluster),
        "nodeClaim": _claim(claim, placement),
        "nodeType": _type(node.provider, type_name),
        "nodeProvider": _provider(node.provider),
        "nodeEnvironment": {"outputs": outputs_of(node.environment, secret_outputs)},
    }


def as_applied(new: Mapping[str, Any], applied: Mapping[str, Any]) -> dict[str, Any]:
    """New variables with the user data that was applied: it has the token of the machine that is there, which nothing
    else is told, and a release of ours that writes another one makes no node another."""
    before = (applied.get("variables") or {}).get("vcluster") or {}
    user_data = {name: before[name] for name in ("userData", "userDataBase64") if name in before}
    return {**new, "vcluster": {**new["vcluster"], **user_data}}


def of_environment(work: EnvironmentWork, infrastructure: Mapping[str, Any] | None) -> dict[str, Any]:
    """``vcluster`` for a template of an environment; the second stage gets the outputs of the first."""
    properties = {**work.provider.properties, **work.environment.properties}
    resolved = {key: text for key, text in properties.items() if text != ANY and "," not in text}
    outputs = {} if infrastructure is None else {INFRASTRUCTURE: dict(infrastructure)}
    return {
        "name": work.cluster.name,
        "namespace": NAMESPACE,
        "requirements": {**resolved, **{short: resolved[key] for key, short in _SHORT.items() if key in resolved}},
        "properties": properties,
        "instance": _instance(work.cluster),
        "nodeEnvironment": {
            "metadata": {"name": work.environment.id, "namespace": NAMESPACE},
            "outputs": outputs,
        },
        "nodeProvider": _provider(work.provider),
    }


def requirements_of(claim: NodeClaim, placement: Placement, properties: Mapping[str, str]) -> dict[str, str]:
    """One value for each property and requirement. A list, or ``*``, becomes the value that the claim asks for, or of
    the placement.

    ``NodeCouldNotBeProvisioned`` names a property of which any value would do: a template cannot choose.
    """
    permitted = {key: parse_property(key, text) for key, text in properties.items()}
    placed = {NODE_TYPE: placement.type, CAPACITY_TYPE: placement.capacity_type}
    if len(placement.zones) >= 1 and placement.zones[0] != ANY:
        placed[ZONE] = placement.zones[0]
    selected = {**select_values(permitted, claim, {}), **placed}
    for key, requirement in Requirements.of(claim.requirements).items():
        if key not in selected and not requirement.complement and requirement.values:
            selected[key] = sorted(requirement.values)[0]
    open_keys = [key for key, values in permitted.items() if key not in selected and ANY in values]
    if open_keys:
        raise NodeCouldNotBeProvisioned(
            f"The property {open_keys[0]} is {ANY}, and the claim does not say which value it is to have:"
            f" add a requirement {open_keys[0]} to the claim or its pool."
        )
    short = {name: selected[key] for key, name in _SHORT.items() if key in selected and name not in selected}
    return dict(sorted({**selected, **short}.items()))


def outputs_of(environment: NodeEnvironment | None, secrets: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of an environment as templates read them, the secret ones at their places."""
    outputs: dict[str, Any] = {}
    for name, value in (environment.outputs if environment is not None else {}).items():
        outputs[name] = dict(value) if isinstance(value, dict) else value
    for name, value in secrets.items():
        stage, dot, inner = name.partition(".")
        if dot and stage in (INFRASTRUCTURE, KUBERNETES):
            outputs[stage] = {**outputs.get(stage, {}), inner: value}
        else:
            outputs[name] = value
    return outputs


def _properties(provider: NodeProvider, type_name: str, claim: NodeClaim) -> dict[str, str]:
    declaration = declared_type(provider, type_name)
    return written(claim, provider.properties, declaration.properties if declaration is not None else {})


def _instance(cluster: Cluster | None) -> dict[str, Any]:
    if cluster is None:
        return {}
    return {
        "metadata": {"name": cluster.name, "namespace": NAMESPACE, "uid": cluster.id, "labels": dict(cluster.tags)},
        "spec": {},
    }


def _claim(claim: NodeClaim, placement: Placement) -> dict[str, Any]:
    spec = {"requirements": list(claim.requirements), "properties": dict(claim.properties), "typeRef": placement.type}
    return {"metadata": {"name": claim.name, "namespace": NAMESPACE, "uid": claim.id}, "spec": spec}


def _type(provider: NodeProvider, type_name: str) -> dict[str, Any]:
    declaration = declared_type(provider, type_name)
    if declaration is None:
        return {"metadata": {"name": type_name}, "spec": {}}
    spec = {"properties": dict(declaration.properties), "resources": dict(declaration.resources)}
    labels = {"labels": dict(declaration.labels), "annotations": dict(declaration.annotations)}
    return {"metadata": {"name": f"{provider.name}.{type_name}", **labels}, "spec": spec}


def _provider(provider: NodeProvider) -> dict[str, Any]:
    return {"metadata": {"name": provider.name}, "spec": {"properties": dict(provider.properties)}}
