"""Machines of claims that are launched together: one instant fleet for all, by whichever of them comes first.

The group's record says what was asked for and which machine is whose. The machines carry the group's id as their
resource: to tag each with its claim would take as many calls as launching each alone.
"""

from __future__ import annotations

import json

from stockyard.domain.nodes.launch_groups import INTENDED, MADE, OPEN, refusal_of, share
from stockyard.domain.records import LaunchGroup, NodeClaim
from stockyard.domain.values.times import from_text, to_text
from stockyard.errors import InsufficientCapacity, NotYetVisible, VendorError, VendorTimeout, VendorUnavailable
from stockyard.ports import Outcome
from stockyard.ports.node_work import Group
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.errors import REPEATED
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clouds.aws.resources.making import Reconciler
from stockyard.providers.nodes.ec2 import fleet
from stockyard.providers.nodes.ec2.machine import KEY, Launch
from stockyard.providers.nodes.ec2.overrides import placement

LOOK_AGAIN, LOOK_LATER = 2, 15
"""Seconds until the next look at a call that another claim's worker makes; longer when its answer is overdue."""
OVERDUE = 20
"""Seconds after which a call should have been answered."""
PAUSE = 5
"""Seconds between calls that come too early."""


def launch(attempt: Launch, group: Group, owner: tags.Owner) -> Outcome:
    """The claim's machine, of a call that is made once for the group. Raises as ``NodeSource.launch`` does."""
    line = attempt.reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    if line is not None and line.state == MADE:
        return attempt.outcome(line.vendor_id)
    record = group.read()
    if record is None or attempt.work.claim.id not in record.members:
        # Its machine was refused, and the worker died before it could say so.
        raise InsufficientCapacity("The claim has left the group that it was placed with.")
    record = _resolve(attempt.reconciler, group, owner, record)
    if record.state == OPEN:
        if record.pause_until is not None and attempt.work.now < from_text(record.pause_until):
            return Outcome(False, "A call for this and other claims came too early.", wait_seconds=PAUSE)
        record = _call(attempt, group, owner, record)
    if record.state == INTENDED:
        overdue = (attempt.work.now - from_text(str(record.intended_at))).total_seconds() > OVERDUE
        wait = LOOK_LATER if overdue else LOOK_AGAIN
        return Outcome(False, "Another claim's worker launches the machines.", wait_seconds=wait)
    machine = record.machines.get(attempt.work.claim.id)
    if machine is None:
        raise refusal_of(record)
    if machine["type"]:
        attempt.launched.append(fleet.LaunchedMachine(machine["id"], machine["type"], machine["zone"]))
        attempt.refused.update(json.loads(machine.get("refused", "{}")))
    _take(attempt.reconciler, attempt.work.claim, machine["id"])
    return attempt.outcome(machine["id"])


def settle(reconciler: Reconciler, claim: NodeClaim, group: Group, owner: tags.Owner) -> Outcome | None:
    """Bring the claim's share of its group onto the claim's own ledger, so that a deletion ends the share with the
    rest.

    An outcome, not done, while a call for it may be under way.
    """
    record = group.read()
    if record is None or claim.id not in record.members:
        return None
    if share(record, claim.id).in_flight:
        record = _resolve(reconciler, group, owner, record)
        if share(record, claim.id).in_flight:
            return Outcome(False, "Waiting for a call that may have launched the machine.", wait_seconds=PAUSE)
    machine_id = share(record, claim.id).machine_id
    # Gone for sure is only what is no longer new: a new machine may be hidden.
    new = reconciler.recent(record.made_at)
    if machine_id and (new or ec2_kinds.INSTANCE.state(reconciler.calls, machine_id) is not State.ABSENT):
        _take(reconciler, claim, machine_id)
    return None


def _take(reconciler: Reconciler, claim: NodeClaim, machine_id: str) -> None:
    """Write the machine on the claim's ledger, where everything that comes later finds it."""
    capacity_type = placement(claim).options[0].capacity_type
    line = reconciler.ledger.intend(ec2_kinds.INSTANCE.name, KEY, {"capacity_type": capacity_type})
    if line.state != MADE:
        reconciler.ledger.made(line, machine_id)


def _call(attempt: Launch, group: Group, owner: tags.Owner, record: LaunchGroup) -> LaunchGroup:
    """Make the call. What can fail without it comes first, so that nothing is announced in vain."""
    choice = attempt.choice()
    template = attempt.template(choice)
    now = to_text(attempt.work.now)
    attempt.request(choice, template, "", {}, first=record.id)
    record = group.intend(record, now if template.fresh else record.template_at)
    name = attempt.reconciler.name(placement(attempt.work.claim).group.partition("_")[2].lower())
    marks = tags.full(owner, ec2_kinds.INSTANCE.name, KEY, name, str(record.intended_at))
    request = attempt.request(choice, template, record.token, marks, len(record.asked), record.id)
    try:
        answer = attempt.ask(request, fresh=attempt.reconciler.recent(record.template_at))
    except (VendorTimeout, VendorUnavailable):
        raise  # It may have happened: the record stays intended.
    except InsufficientCapacity as refusal:
        return group.made(record, (), refusal) or record
    except VendorError as error:
        if error.code != REPEATED:
            group.opened(record, PAUSE if isinstance(error, NotYetVisible) else 0)
        raise
    refused = {"refused": json.dumps(answer.refused)} if answer.refused else {}
    machines = [
        {"id": machine.machine_id, "type": machine.type, "zone": machine.zone, **refused} for machine in answer.machines
    ]
    updated = group.made(record, machines, answer.short) or record
    assigned = {machine["id"] for machine in updated.machines.values()}
    for machine in answer.machines:
        if machine.machine_id not in assigned:
            # The answer came so late that it was no longer waited for: nobody will have this machine.
            ec2_kinds.INSTANCE.delete(attempt.reconciler.calls, machine.machine_id)
    return updated


def _resolve(reconciler: Reconciler, group: Group, owner: tags.Owner, record: LaunchGroup) -> LaunchGroup:
    """The record; of a call whose answer nobody has written down, with what a search shows that it has made.

    All that was asked for is enough at once. Fewer count only when nothing can be hidden or under way any more.
    """
    over = group.over(record)
    if record.state != INTENDED or (not over and reconciler.recent(record.intended_at)):
        return record
    group_tags = tags.of_key(owner, ec2_kinds.INSTANCE.name, KEY)
    machine_ids = sorted(
        instance.vendor_id for instance in ec2_kinds.INSTANCE.search(reconciler.calls, group_tags, None)
    )
    if not over and len(machine_ids) < len(record.asked):
        return record
    if not machine_ids:
        return group.opened(record) or record
    return group.made(record, [{"id": machine, "type": "", "zone": ""} for machine in machine_ids]) or record
