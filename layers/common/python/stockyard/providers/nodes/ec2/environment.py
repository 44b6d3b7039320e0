"""The environment of one cluster: where its nodes stand, found once; and the end of what its launches made."""

from __future__ import annotations

from stockyard.ports import Outcome
from stockyard.ports.nodes import EnvironmentWork
from stockyard.providers.aws.making import Maker
from stockyard.providers.nodes.ec2 import place, templates
from stockyard.providers.nodes.ec2.work import PLACE

KEY = "main"


def prepare(maker: Maker, work: EnvironmentWork) -> Outcome:
    """Find the place. Its ledger line stands for the launch templates too, which the first launch of a pool makes."""
    place.check(work.provider, work.cluster)
    found = place.find(maker.calls, work.provider, work.cluster, maker.owner)
    line = maker.ledger.intend(PLACE.name, KEY)
    if line.state != "made":
        maker.ledger.made(line, work.environment.id)
    zones = ", ".join(found.by_zone)
    return Outcome(True, f"Nodes stand in {len(found.zones)} subnets in {zones}.", facts=found.facts())


def clear(maker: Maker) -> Outcome:
    """Delete the launch templates, then forget the place. Done when a search finds none."""
    left = templates.remove(maker.calls, maker.owner)
    if left:
        return Outcome(False, f"launch templates {', '.join(left)} are being deleted", 5, remaining=tuple(left))
    return maker.unmake()
