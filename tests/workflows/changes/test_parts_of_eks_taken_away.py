"""Parts of a cluster on EKS are taken away by hand: roles, a launch template, a security group, a subnet. The next
change of any kind makes it again, also one that is resumed, and a deletion ends with all of it gone. Until then each
sweep says which parts the cluster misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from functions.reaper.handler import lambda_handler as reaper_handler
from local.aws.accounts import REGION
from local.aws.corrections.eks.eks import eks_backends
from stockyard.lifecycle.sweeping import COMPLETE, QUIET_SECONDS
from tests.harness.crash.cells import carry_on
from tests.harness.crash.ec2 import TENANT_ACCOUNT
from tests.harness.crash.eks import CrashEks
from tests.harness.crash.faults import Call, Fault, Mode
from tests.harness.crash.world import CrashWorld, crash_world

ROUNDS = 12
"""How often anybody looks at an operation that goes on."""
LATER = 3600.0
"""Seconds after which nothing that was made is young any more."""


def _ec2() -> Any:
    return ec2_backends[TENANT_ACCOUNT][REGION]


def _role(kind: str) -> Callable[[], None]:
    def take() -> None:
        roles = iam_backends[TENANT_ACCOUNT]["aws"].roles
        for key in [key for key, each in roles.items() if each.name.endswith(f"-{kind}-role")]:
            del roles[key]

    return take


def _template() -> None:
    """Take away the templates of groups without machines: EKS gives another group no other template."""
    for key, template in list(_ec2().launch_templates.items()):
        if f"-lt-{TRAINING['name']}" in template.name:
            del _ec2().launch_templates[key], _ec2().launch_template_name_to_ids[template.name]


def _security_group() -> None:
    for by_id in _ec2().groups.values():
        for name in [name for name, group in by_id.items() if group.name.endswith("-efa")]:
            del by_id[name]


def _subnet() -> None:
    """A private one without machines: EC2 lets nobody remove another."""
    subnets = {each.subnet_id for group in _ec2().reservations.values() for each in group.instances}
    for by_id in _ec2().subnets.values():
        for name in list(by_id):
            tags = {tag["key"]: tag["value"] for tag in _ec2().describe_tags(filters={"resource-id": [name]})}
            if "private-subnet" in tags.get("Name", "") and name not in subnets:
                del by_id[name]
                return


LOSSES: Mapping[str, Callable[[], None]] = {
    "role of nodes": _role("node"),
    "role of the control plane": _role("cluster"),
    "role of viewers": _role("viewer"),
    "launch template": _template,
    "security group": _security_group,
    "subnet": _subnet,
}
(TRAINING,) = CrashEks.body["settings"]["node_groups"]
BATCH = {"name": "batch", "role": "system", "instance_type": "m6i.2xlarge", "count": 0}


@pytest.fixture(scope="module")
def world() -> Iterator[CrashWorld]:
    with crash_world(CrashEks, lean=True) as crash_world_of_module:
        yield crash_world_of_module


def _end_of(world: CrashWorld) -> str:
    """End of the cluster's operation."""
    for _ in range(ROUNDS):
        carry_on(world)
        operation = world.operation()
        if operation is None or operation.status in ("failed", "succeeded"):
            break
        world.clock.advance(61)
    world.clock.advance(LATER)
    return "gone" if operation is None else f"{operation.status} {operation.error or ''}".strip()


def _new_cluster(world: CrashWorld, seed: int) -> Counter[str]:
    """A ready cluster; what there is, by kind."""
    world.reset(seed)
    world.tap.faults = []
    assert world.ask("create", "POST", "/v1/clusters", world.cloud.body)[0] == 202
    assert _end_of(world) == "succeeded"
    return _there(world)


def _there(world: CrashWorld) -> Counter[str]:
    return Counter(kind for kind, _ in world.things())


def _changed(world: CrashWorld, body: Mapping[str, Any]) -> str:
    cluster = world.cluster()
    assert cluster is not None
    status, answer = world.patch("change", f"/v1/clusters/{cluster.id}", body, cluster.version)
    return _end_of(world) if status == 202 else f"{status} {answer}"


def _stands_on_what_is_there() -> list[str]:
    """Parts that EKS was told of and that are no more, of the cluster and of its groups."""
    subnets = {name for by_id in _ec2().subnets.values() for name in by_id}
    (cluster,) = eks_backends[TENANT_ACCOUNT][REGION].clusters.values()
    missing = [
        f"the cluster: {name}" for name in cluster.document["resourcesVpcConfig"]["subnetIds"] if name not in subnets
    ]
    for group in cluster.groups.values():
        document = group.document
        template = (document.get("launchTemplate") or {}).get("id")
        if template and template not in _ec2().launch_templates:
            missing.append(f"{document['nodegroupName']}: {template}")
        if not group.scaling.members:
            missing += [f"{document['nodegroupName']}: {name}" for name in document["subnets"] if name not in subnets]
    return missing


def _message(world: CrashWorld) -> str:
    """Message of the cluster after a sweep of parts that are gone."""
    # A quiet tenant is swept once an hour. In between time passes as if no sweep had come for hours.
    world.clock.advance(QUIET_SECONDS)
    world.call("reaper", reaper_handler, {"reconciled": True})
    world.reap()
    cluster = world.cluster()
    assert cluster is not None
    return next((part.message for part in cluster.conditions if part.type == COMPLETE), "")


def test_what_is_taken_away_is_named_and_made_again_by_the_next_change(world: CrashWorld, seed: int) -> None:
    before = _new_cluster(world, seed)
    wrong: dict[str, Any] = {"nothing": [_message(world)] if _message(world) else []}
    for number, (name, take) in enumerate(LOSSES.items(), 5):
        take()
        named = _message(world)
        groups = [{**TRAINING, "max_size": number}]
        end, things = _changed(world, {"settings": {"node_groups": groups}}), _there(world)
        wrong[name] = [*([] if end == "succeeded" else [end]), *(before - things), *_stands_on_what_is_there()]
        wrong[name] += [] if f": {name.partition(' of ')[0]} " in named else [f"the cluster says {named!r}"]
        wrong[name] += [after] if (after := _message(world)) else []
    for take in LOSSES.values():
        take()
    end = _changed(world, {"kubernetes_version": "1.35"})
    wrong["upgrade"] = [*([] if end == "succeeded" else [end]), *(before - _there(world)), *_stands_on_what_is_there()]
    assert {name: each for name, each in wrong.items() if each} == {}


def test_what_is_taken_away_before_a_resume_is_made_again_by_it(world: CrashWorld, seed: int) -> None:
    _new_cluster(world, seed)
    world.tap.faults = [Fault(Call("change:node_groups", "eks.CreateNodegroup", 1), Mode.REFUSED)]
    assert _changed(world, {"settings": {"node_groups": [TRAINING, BATCH]}}).startswith("failed")
    world.tap.lift()
    _role("node")()
    _subnet()
    cluster = world.cluster()
    assert cluster is not None
    assert world.ask("resume", "POST", f"/v1/clusters/{cluster.id}/resume", {})[0] == 202
    assert _end_of(world) == "succeeded"
    assert _stands_on_what_is_there() == []


def test_a_deletion_ends_with_all_of_it_gone(world: CrashWorld, seed: int) -> None:
    _new_cluster(world, seed)
    for take in LOSSES.values():
        take()
    cluster = world.cluster()
    assert cluster is not None
    assert world.ask("delete", "DELETE", f"/v1/clusters/{cluster.id}")[0] == 202
    assert _end_of(world) == "gone"
    world.relay()
    world.relay()
    assert world.leftovers() == []
