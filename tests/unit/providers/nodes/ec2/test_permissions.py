"""The tenant's template against the calls of the source of nodes: each is allowed, and nothing is granted for nothing.

What AWS checks for an instant fleet is written down here by hand: the fleet, its template, and, as for RunInstances in
the caller's name, what it uses and what it makes with the tags that it gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from local.policies import Ask, allowed_by, without
from stockyard.providers.aws.calls import Calls
from stockyard.providers.clusters.ec2 import tenant_template

REGION, ACCOUNT = "us-east-1", "222222222222"
SPOT_ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"


@dataclass
class Stage:
    name_prefix: str = "vantage"
    principal_pattern: str = "arn:aws:iam::111111111111:role/Stockyard-dev-*"
    bus: str = ""


def _resolved(value: Any) -> Any:
    if isinstance(value, dict):
        return _resolved(value["Fn::Sub"]) if "Fn::Sub" in value else {k: _resolved(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_resolved(one) for one in value]
    return value.replace("${AWS::Partition}", "aws") if isinstance(value, str) else value


def _arn(kind: str, name: str = "new") -> str:
    return f"arn:aws:ec2:{REGION}:{'' if kind == 'image' else ACCOUNT}:{kind}/{name}"


def _given(tags: list[dict[str, str]]) -> dict[str, str]:
    return {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in tags}


@dataclass
class Account:
    """What AWS knows while the calls come in: the tags of each thing of ours, and which templates there are."""

    hand: Any
    seen: list[tuple[str, dict[str, Any]]]
    tags: dict[str, Any]

    def asks(self) -> Iterator[Ask]:
        cluster = self.hand.yard.cluster.client_id
        role = f"arn:aws:iam::{ACCOUNT}:role/stockyard/vantage-{cluster}-node-role"
        for operation, given in self.seen:
            action = "ec2:" + "".join(word.capitalize() for word in operation.split("_"))
            if operation.startswith("describe_"):
                yield Ask(action, "*")
            elif operation == "create_launch_template":
                yield from self._made(action, given)
                self.tags[given["LaunchTemplateName"]] = given
            elif operation == "create_fleet":
                yield from self._fleet(given)
                yield Ask("iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"})
            elif operation == "delete_launch_template":
                yield Ask(action, _arn("launch-template", given["LaunchTemplateId"]), self._ours())
            elif operation != "get_parameter":
                yield Ask(action, _arn("instance", given["InstanceIds"][0]), self._ours())

    def _ours(self) -> dict[str, str]:
        return {"aws:ResourceTag/stockyard:installation": "inst-1"}

    def _made(self, action: str, given: dict[str, Any], *also: str) -> Iterator[Ask]:
        for one in given["TagSpecifications"]:
            context = _given(one["Tags"])
            for name in (action, *also):
                if one["ResourceType"] != "fleet" or name == "ec2:CreateFleet":
                    yield Ask(name, _arn(one["ResourceType"]), context)
                    yield Ask("ec2:CreateTags", _arn(one["ResourceType"]), {**context, "ec2:CreateAction": name[4:]})

    def _fleet(self, given: dict[str, Any]) -> Iterator[Ask]:
        (config,) = given["LaunchTemplateConfigs"]
        template = self.tags[config["LaunchTemplateSpecification"]["LaunchTemplateName"]]
        both = ("ec2:CreateFleet", "ec2:RunInstances")
        for action in both:
            for kind in ("image", "subnet", "security-group"):
                yield Ask(action, _arn(kind, "theirs"))
            yield Ask(action, _arn("launch-template", "lt-1"), self._ours())
        yield from self._made(both[0], given, both[1])
        yield from self._made(
            both[0], {"TagSpecifications": template["LaunchTemplateData"]["TagSpecifications"]}, both[1]
        )
        if "SpotOptions" in given:
            yield Ask("iam:CreateServiceLinkedRole", SPOT_ROLE, {"iam:AWSServiceName": "spot.amazonaws.com"})


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    call, pages = Calls.call, Calls.pages

    def calling(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        found.append((operation, parameters))
        return call(calls, service, operation, **parameters)

    def paging(calls: Calls, service: str, operation: str, key: str, **parameters: Any) -> Any:
        found.append((operation, parameters))
        return pages(calls, service, operation, key, **parameters)

    monkeypatch.setattr(Calls, "call", calling)
    monkeypatch.setattr(Calls, "pages", paging)
    return found


@pytest.fixture
def asks(hand: Any, build: Any, seen: list[tuple[str, dict[str, Any]]]) -> list[Ask]:
    """What AWS checks in the life of a machine on demand and one for spot."""
    hand.prepare()
    del seen[:]
    for capacity_type in ("on-demand", "spot"):
        hand.provider = build.provider(capacityTypes=["on-demand", "spot"])
        hand.place(build.option("m6i.large", capacity_type))
        hand.launch()
        for state in ("Off", "On", "Reboot"):
            hand.until_done(lambda wanted=state: hand.source.power(hand.node_work(), wanted))
        hand.later(120)
        hand.terminate()
        hand.again()
    names = sorted(one["LaunchTemplateName"] for one in hand.templates())
    stem = f"vantage-{hand.yard.cluster.client_id}-aws"
    assert names == [stem, f"{stem}-spot"]
    hand.clear()
    assert hand.templates() == []
    return list(Account(hand, seen, {}).asks())


def statements(hand: Any) -> list[dict[str, Any]]:
    template = tenant_template.render(hand.yard.account, "inst-1", Stage())["Resources"]
    attached = [item["Ref"] for item in template["Role"]["Properties"]["ManagedPolicyArns"]]
    found = [one for name in attached for one in template[name]["Properties"]["PolicyDocument"]["Statement"]]
    return [dict(_resolved(one)) for one in found]


def nodes(hand: Any) -> list[dict[str, Any]]:
    template = tenant_template.render(hand.yard.account, "inst-1", Stage())["Resources"]
    return [_resolved(one) for one in template["NodePermissions"]["Properties"]["PolicyDocument"]["Statement"]]


def test_what_nodes_need_is_granted_and_what_is_granted_is_needed(hand: Any, asks: list[Ask]) -> None:
    everything = statements(hand)
    assert [str(ask) for ask in asks if not allowed_by(everything, ask)] == []
    used = {(one["Sid"], ask.action) for ask in asks for one in allowed_by(everything, ask)}
    granted = {(one["Sid"], action) for one in nodes(hand) for action in one["Action"]}
    assert granted - used == set()
    for sid, action in sorted(granted):
        less = without(everything, sid, action)
        assert any(not allowed_by(less, ask) for ask in asks), f"{action} is allowed without {sid} too"


def test_what_does_not_carry_our_tag_is_neither_made_nor_touched(hand: Any, asks: list[Ask]) -> None:
    everything = statements(hand)
    for ask in asks:
        stranger = {key: "other" if "Tag/stockyard:installation" in key else text for key, text in ask.context.items()}
        if stranger != dict(ask.context):
            assert not allowed_by(everything, replace(ask, context=stranger)), ask
    admin = f"arn:aws:iam::{ACCOUNT}:role/admin"
    assert not allowed_by(everything, Ask("iam:PassRole", admin, {"iam:PassedToService": "ec2.amazonaws.com"}))
    assert not [one for one in everything if any("*" in action for action in one["Action"])]


def test_the_nodes_policy_is_small(hand: Any) -> None:
    assert len(json.dumps(nodes(hand), separators=(",", ":"))) < 6144
