"""A session works for one cluster: nothing of another one of ours, nor its roles, can be reached by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from local.aws.permissions.policies import Ask, Context
from local.aws.permissions.sessions import Document
from stockyard.domain.records import CloudAccount
from stockyard.domain.values import ids
from stockyard.providers.clouds.aws.policies import session
from stockyard.providers.clouds.aws.resources.child_names import role_name
from tests.harness.closure.changes import CHANGED
from tests.harness.closure.foreign import things

ROLE = {"role_arn": "arn:aws:iam::222222222222:role/stockyard"}
ACCOUNT = CloudAccount("1", "aws", "a", "", ROLE, "ext-1", "verified", "", "t", "t")
OWN, OTHER = (ids.client_id("acme", f"clu_{number}", "a-cluster-with-a-rather-long-name") for number in (1, 2))


def document(client_id: str) -> Document:
    return Document(json.loads(session.only(ACCOUNT, "vantage", client_id))["Statement"])


def asks() -> Iterator[tuple[str, str]]:
    """Each action that changes anything, on a thing of its kind."""
    for action, kinds in CHANGED.items():
        yield from ((action, thing.arn) for thing in things() if thing.kind in kinds and thing.whose == "plain")


def test_what_is_of_another_cluster_is_out_of_reach() -> None:
    limit = document(OWN)
    every = list(asks())
    assert len(every) > 100
    for action, arn in every:
        for side in ("Resource", "Request"):
            contexts: list[Context] = [{f"aws:{side}Tag/vantage-cluster": name} for name in (OWN, OTHER)]
            assert [limit.allows(Ask(action, arn, context)) for context in contexts] == [True, False], (action, side)
        assert limit.allows(Ask(action, arn)), "what carries no cluster is the role's to refuse"


def test_roles_of_another_cluster_are_out_of_reach() -> None:
    limit = document(OWN)
    for suffix in ("node-role", "operator-role", "efs-csi-role"):
        for client_id in (OWN, OTHER):
            arn = f"arn:aws:iam::222222222222:role/stockyard/{role_name('vantage', client_id, suffix)}"
            for action in ("iam:PassRole", "iam:GetRole", "iam:CreateRole", "sts:AssumeRole"):
                assert limit.allows(Ask(action, arn)) is (client_id == OWN), (action, suffix)
    for arn in ("*", "arn:aws:iam::222222222222:role/vantage-snapshots-1", "arn:aws:iam::222222222222:role/own"):
        assert limit.allows(Ask("iam:PassRole", arn)), "others are the role's to refuse"


@pytest.mark.parametrize("partition", ["aws", "aws-us-gov"])
def test_sts_takes_it(partition: str) -> None:
    attributes: dict[str, Any] = {"role_arn": f"arn:{partition}:iam::222222222222:role/stockyard"}
    text = session.only(replace(ACCOUNT, attributes=attributes), "a-stage-with-a-long-prefix", OWN)
    # What STS packs is not told; a third of the characters leaves room.
    assert len(text) < session.MOST_CHARACTERS // 2
    assert f"arn:{partition}:iam" in text
