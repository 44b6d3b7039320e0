"""The tenant's template grants each call of the node source, and nothing that the source does not need.

What AWS checks for an instant fleet is written down here by hand: the fleet, its template, and, as for RunInstances in
the caller's name, what it uses and what it makes with the tags that it gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from stockyard.providers.clouds.aws import tenant_template
from stockyard.providers.clouds.aws.calls import Calls
from tests.harness import tenant_stack
from tests.harness.policies import Ask, allowed_by, without
from tests.harness.stage import Stage

REGION, ACCOUNT = "us-east-1", "222222222222"
SPOT_ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"


def _resolved(value: Any) -> Any:
    if isinstance(value, dict):
        return _resolved(value["Fn::Sub"]) if "Fn::Sub" in value else {k: _resolved(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_resolved(item) for item in value]
    return value.replace("${AWS::Partition}", "aws") if isinstance(value, str) else value


def _arn(kind: str, name: str = "new") -> str:
    return f"arn:aws:ec2:{REGION}:{'' if kind == 'image' else ACCOUNT}:{kind}/{name}"


def _request_tags(tags: list[dict[str, str]]) -> dict[str, str]:
    return {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in tags}


@dataclass
class Account:
    """The state of the account during the calls: the tags of our resources and the launch templates."""

    hand: Any
    recorded_calls: list[tuple[str, dict[str, Any]]]
    tags: dict[str, Any]

    def asks(self) -> Iterator[Ask]:
        cluster = self.hand.yard.cluster.client_id
        role = f"arn:aws:iam::{ACCOUNT}:role/stockyard/vantage-{cluster}-node-role"
        for operation, parameters in self.recorded_calls:
            action = "ec2:" + "".join(word.capitalize() for word in operation.split("_"))
            if operation.startswith("describe_"):
                yield Ask(action, "*")
            elif operation == "create_launch_template":
                yield from self._creation(action, parameters)
                self.tags[parameters["LaunchTemplateName"]] = parameters
            elif operation == "create_fleet":
                yield from self._fleet(parameters)
                yield Ask("iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"})
            elif operation == "delete_launch_template":
                yield Ask(action, _arn("launch-template", parameters["LaunchTemplateId"]), self._installation_tag())
            elif operation != "get_parameter":
                yield Ask(action, _arn("instance", parameters["InstanceIds"][0]), self._installation_tag())

    def _installation_tag(self) -> dict[str, str]:
        return {"aws:ResourceTag/stockyard:installation": "inst-1"}

    def _creation(self, action: str, parameters: dict[str, Any], *also: str) -> Iterator[Ask]:
        for specification in parameters["TagSpecifications"]:
            context = _request_tags(specification["Tags"])
            for name in (action, *also):
                if specification["ResourceType"] != "fleet" or name == "ec2:CreateFleet":
                    yield Ask(name, _arn(specification["ResourceType"]), context)
                    yield Ask(
                        "ec2:CreateTags", _arn(specification["ResourceType"]), {**context, "ec2:CreateAction": name[4:]}
                    )

    def _fleet(self, parameters: dict[str, Any]) -> Iterator[Ask]:
        (config,) = parameters["LaunchTemplateConfigs"]
        template = self.tags[config["LaunchTemplateSpecification"]["LaunchTemplateName"]]
        both = ("ec2:CreateFleet", "ec2:RunInstances")
        for action in both:
            for kind in ("image", "subnet", "security-group"):
                yield Ask(action, _arn(kind, "theirs"))
            yield Ask(action, _arn("launch-template", "lt-1"), self._installation_tag())
        yield from self._creation(both[0], parameters, both[1])
        yield from self._creation(
            both[0], {"TagSpecifications": template["LaunchTemplateData"]["TagSpecifications"]}, both[1]
        )
        if "SpotOptions" in parameters:
            yield Ask("iam:CreateServiceLinkedRole", SPOT_ROLE, {"iam:AWSServiceName": "spot.amazonaws.com"})


@pytest.fixture
def recorded_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    recorded: list[tuple[str, dict[str, Any]]] = []
    call, pages = Calls.call, Calls.pages

    def calling(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        recorded.append((operation, parameters))
        return call(calls, service, operation, **parameters)

    def paging(calls: Calls, service: str, operation: str, key: str, **parameters: Any) -> Any:
        recorded.append((operation, parameters))
        return pages(calls, service, operation, key, **parameters)

    monkeypatch.setattr(Calls, "call", calling)
    monkeypatch.setattr(Calls, "pages", paging)
    return recorded


@pytest.fixture
def asks(hand: Any, build: Any, recorded_calls: list[tuple[str, dict[str, Any]]]) -> list[Ask]:
    """What AWS checks in the life of a machine on demand and one for spot."""
    hand.prepare()
    del recorded_calls[:]
    for capacity_type in ("on-demand", "spot"):
        hand.provider = build.provider(capacityTypes=["on-demand", "spot"])
        hand.place(build.option("m6i.large", capacity_type))
        hand.launch()
        for state in ("Off", "On", "Reboot"):
            hand.until_done(lambda power=state: hand.source.power(hand.node_work(), power))
        hand.later(120)
        hand.terminate()
        hand.again()
    names = sorted(template["LaunchTemplateName"] for template in hand.templates())
    stem = f"vantage-{hand.yard.cluster.client_id}-aws"
    assert names == [stem, f"{stem}-spot"]
    hand.clear()
    assert hand.templates() == []
    return list(Account(hand, recorded_calls, {}).asks())


def statements(hand: Any) -> list[dict[str, Any]]:
    template = tenant_template.render(hand.yard.account, "inst-1", Stage())
    attached_statements = [
        statement
        for name in tenant_stack.attached(template)
        for statement in template["Resources"][name]["Properties"]["PolicyDocument"]["Statement"]
    ]
    return [dict(_resolved(statement)) for statement in attached_statements]


def nodes(hand: Any) -> list[dict[str, Any]]:
    template = tenant_template.render(hand.yard.account, "inst-1", Stage())["Resources"]
    return [
        _resolved(statement) for statement in template["NodePermissions"]["Properties"]["PolicyDocument"]["Statement"]
    ]


def test_template_grants_exactly_the_calls_for_nodes(hand: Any, asks: list[Ask]) -> None:
    everything = statements(hand)
    assert [str(ask) for ask in asks if not allowed_by(everything, ask)] == []
    used = {(statement["Sid"], ask.action) for ask in asks for statement in allowed_by(everything, ask)}
    granted = {(statement["Sid"], action) for statement in nodes(hand) for action in statement["Action"]}
    assert granted - used == set()
    for sid, action in sorted(granted):
        less = without(everything, sid, action)
        assert any(not allowed_by(less, ask) for ask in asks), f"{action} is allowed without {sid} too"


def test_resources_without_our_tag_are_denied(hand: Any, asks: list[Ask]) -> None:
    everything = statements(hand)
    for ask in asks:
        stranger = {key: "other" if "Tag/stockyard:installation" in key else text for key, text in ask.context.items()}
        if stranger != dict(ask.context):
            assert not allowed_by(everything, replace(ask, context=stranger)), ask
    admin = f"arn:aws:iam::{ACCOUNT}:role/admin"
    assert not allowed_by(everything, Ask("iam:PassRole", admin, {"iam:PassedToService": "ec2.amazonaws.com"}))
    assert not [statement for statement in everything if any("*" in action for action in statement["Action"])]


def test_policy_of_nodes_is_within_size_limit(hand: Any) -> None:
    assert len(json.dumps(nodes(hand), separators=(",", ":"))) < 6144
