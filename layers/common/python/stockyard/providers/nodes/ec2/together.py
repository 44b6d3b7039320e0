"""Machines of claims that are launched together: one instant fleet for all, by whichever of them comes first.

The group's record says what was asked for and which machine is whose. The machines carry the group's id as their
resource: to tag each with its claim would take as many calls as launching each alone.
"""

from __future__ import annotations

from stockyard.domain.launch_groups import INTENDED, MADE, OPEN, refusal_of, share
from stockyard.domain.records import LaunchGroup, NodeClaim
from stockyard.domain.times import from_text, to_text
from stockyard.errors import (
    InsufficientCapacity,
    NotYetVisible,
    VendorError,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.ports import Outcome
from stockyard.ports.nodes import Group
from stockyard.providers.aws import ec2_kinds, tags
from stockyard.providers.aws.errors import REPEATED
from stockyard.providers.aws.kinds import State
from stockyard.providers.aws.making import Maker
from stockyard.providers.nodes.ec2 import fleet
from stockyard.providers.nodes.ec2.machine import KEY, Launch
from stockyard.providers.nodes.ec2.ways import placement

LOOK_AGAIN, LOOK_LATER = 2, 15
"""Seconds until the next look at a call that another claim's worker makes; longer when its answer is overdue."""
OVERDUE = 20
"""Seconds after which a call should have been answered."""
PAUSE = 5
"""Seconds between calls that come too early."""


def launch(one: Launch, group: Group, owner: tags.Owner) -> Outcome:
    """The claim's machine, of a call that is made once for the group. Raises as ``NodeSource.launch`` does."""
    line = one.maker.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    if line is not None and line.state == MADE:
        return one.outcome(line.vendor_id)
    record = group.read()
    if record is None or one.work.claim.id not in record.members:
        # Its machine was refused, and the worker died before it could say so.
        raise InsufficientCapacity("The claim has left the group that it was placed with.")
    record = _resolved(one.maker, group, owner, record)
    if record.state == OPEN:
        if record.pause_until is not None and one.work.now < from_text(record.pause_until):
            return Outcome(False, "A call for this and other claims came too early.", wait_seconds=PAUSE)
        record = _asked(one, group, owner, record)
    if record.state == INTENDED:
        overdue = (one.work.now - from_text(str(record.intended_at))).total_seconds() > OVERDUE
        wait = LOOK_LATER if overdue else LOOK_AGAIN
        return Outcome(False, "Another claim's worker launches the machines.", wait_seconds=wait)
    mine = record.machines.get(one.work.claim.id)
    if mine is None:
        raise refusal_of(record)
    if mine["type"]:
        one.got.append(fleet.Got(mine["id"], mine["type"], mine["zone"]))
    _take(one.maker, one.work.claim, mine["id"])
    return one.outcome(mine["id"])


def settle(maker: Maker, claim: NodeClaim, group: Group, owner: tags.Owner) -> Outcome | None:
    """Bring the claim's share of its group onto its own ledger, so that it is ended with what else stands there.

    An outcome, not done, while a call for it may be under way.
    """
    record = group.read()
    if record is None or claim.id not in record.members:
        return None
    if share(record, claim.id).in_flight:
        record = _resolved(maker, group, owner, record)
        if share(record, claim.id).in_flight:
            return Outcome(False, "Waiting for a call that may have launched the machine.", wait_seconds=PAUSE)
    machine_id = share(record, claim.id).machine_id
    if machine_id and not _ended(maker, record, machine_id):
        _take(maker, claim, machine_id)
    return None


def _ended(maker: Maker, record: LaunchGroup, machine_id: str) -> bool:
    """Whether a machine is gone for sure: a new one may only be hidden."""
    if maker.recent(record.made_at):
        return False
    return ec2_kinds.INSTANCE.state(maker.calls, machine_id) is State.ABSENT


def _take(maker: Maker, claim: NodeClaim, machine_id: str) -> None:
    """Write the machine on the claim's ledger, where everything that comes later finds it."""
    capacity_type = str(placement(claim).options[0]["capacity_type"])
    line = maker.ledger.intend(ec2_kinds.INSTANCE.name, KEY, {"capacity_type": capacity_type})
    if line.state != MADE:
        maker.ledger.made(line, machine_id)


def _asked(one: Launch, group: Group, owner: tags.Owner, record: LaunchGroup) -> LaunchGroup:
    """Make the call. What can fail without it comes first, so that nothing is announced in vain."""
    choice = one.choice()
    template = one.template(choice)
    now = to_text(one.work.now)
    one.request(choice, template, "", {}, first=record.id)
    record = group.intend(record, now if template.fresh else record.template_at)
    marks = _marks(one, owner, record)
    request = one.request(choice, template, record.token, marks, len(record.asked), record.id)
    try:
        answer = one.ask(request, fresh=one.maker.recent(record.template_at))
    except (VendorTimeout, VendorUnavailable):
        raise  # It may have happened: the record stays intended.
    except InsufficientCapacity as refusal:
        return group.made(record, (), refusal) or record
    except VendorError as error:
        if error.code != REPEATED:
            group.opened(record, PAUSE if isinstance(error, NotYetVisible) else 0)
        raise
    machines = [{"id": got.machine_id, "type": got.type, "zone": got.zone} for got in answer.got]
    kept = group.made(record, machines, answer.short) or record
    given = {machine["id"] for machine in kept.machines.values()}
    for got in answer.got:
        if got.machine_id not in given:
            # The answer came so late that it was no longer waited for: nobody will have this machine.
            ec2_kinds.INSTANCE.delete(one.maker.calls, got.machine_id)
    return kept


def _marks(one: Launch, owner: tags.Owner, record: LaunchGroup) -> dict[str, str]:
    return {
        "Name": one.maker.name(placement(one.work.claim).group.partition("_")[2].lower()),
        **tags.of_owner(owner),
        tags.GENERATION: owner.generation,
        tags.KEY: f"{ec2_kinds.INSTANCE.name}/{KEY}",
        tags.SINCE: str(record.intended_at),
        f"{owner.prefix}-cluster": owner.client_id,
    }


def _resolved(maker: Maker, group: Group, owner: tags.Owner, record: LaunchGroup) -> LaunchGroup:
    """The record; of a call whose answer nobody has written down, with what a search shows that it has made.

    All that was asked for is enough at once. Fewer count only when nothing can be hidden or under way any more.
    """
    over = group.over(record)
    if record.state != INTENDED or (not over and maker.recent(record.intended_at)):
        return record
    mine = {**tags.of_owner(owner), tags.KEY: f"{ec2_kinds.INSTANCE.name}/{KEY}"}
    found = sorted(one.vendor_id for one in ec2_kinds.INSTANCE.search(maker.calls, mine, None))
    if not over and len(found) < len(record.asked):
        return record
    if not found:
        return group.opened(record) or record
    return group.made(record, [{"id": machine, "type": "", "zone": ""} for machine in found]) or record
