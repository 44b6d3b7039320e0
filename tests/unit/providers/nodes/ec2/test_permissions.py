"""The tenant's template grants each call of the node source, and nothing that the source does not need: the fleet, its
template, and, as for RunInstances in the caller's name, what it uses and what it makes with the tags that it gives."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from local.aws.permissions.policies import Ask, allowed_by
from stockyard.providers.clouds.aws.policies import nodes as node_statements
from stockyard.providers.clouds.aws.policies import tenant_template
from stockyard.providers.clouds.aws.policies.statements import ArnScope
from tests.harness import tenant_stack
from tests.harness.asks import recorded_asks
from tests.harness.policies import without
from tests.harness.worlds.stage import Stage

REGION, ACCOUNT = "us-east-1", "222222222222"
USED = (":image/", ":security-group/", ":subnet/")
"""Of things that may be the tenant's own."""


def _resolved(value: Any) -> Any:
    if isinstance(value, dict):
        if "Fn::If" in value:  # an account without earlier clusters
            return _resolved(value["Fn::If"][2])
        return _resolved(value["Fn::Sub"]) if "Fn::Sub" in value else {k: _resolved(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_resolved(item) for item in value]
    return value.replace("${AWS::Partition}", "aws") if isinstance(value, str) else value


@pytest.fixture
def asks(hand: Any, build: Any) -> list[Ask]:
    """Permission checks of AWS in the life of a machine on demand and one for spot."""
    hand.prepare()
    with recorded_asks(ACCOUNT) as recorded:
        for capacity_type in ("on-demand", "spot"):
            hand.provider = build.provider(capacityTypes=["on-demand", "spot"])
            hand.bind(build.option("m6i.large", capacity_type))
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
    return list(recorded.values())


def statements(hand: Any) -> list[dict[str, Any]]:
    template = tenant_template.render(hand.yard.account, "inst-1", Stage())
    return [dict(_resolved(statement)) for statement in tenant_stack.statements(template)]


def nodes(hand: Any) -> list[dict[str, Any]]:
    of_nodes = {statement["Sid"] for statement in node_statements.nodes(ArnScope(ACCOUNT), "inst-1")}
    return [statement for statement in statements(hand) if statement["Sid"] in of_nodes]


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
        if stranger != dict(ask.context) and not any(kind in ask.resource for kind in USED):
            assert not allowed_by(everything, replace(ask, context=stranger)), ask
    admin = f"arn:aws:iam::{ACCOUNT}:role/admin"
    assert not allowed_by(everything, Ask("iam:PassRole", admin, {"iam:PassedToService": "ec2.amazonaws.com"}))
    assert not [statement for statement in everything if any("*" in action for action in statement["Action"])]


def test_policy_of_nodes_is_within_size_limit(hand: Any) -> None:
    assert len(json.dumps(nodes(hand), separators=(",", ":"))) < 6144
