"""Stacks under lost, late and doubled requests and answers, at random: in the end nothing is left, nothing is twice."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from local.cloudformation import StackFailed
from local.cloudformation.runner import Deployed
from stockyard_stack_resources.api import Exchange, Reply
from stockyard_stack_resources.errors import Busy
from tests.constructs.documents import CLUSTER, yard
from tests.harness.stacks.product import Product
from tests.harness.stacks.rig import Rig, rig

SEED = int(os.environ.get("STOCKYARD_SEED", "1"))
MOST = {"request lost": 1, "request too late": 1, "invocation": 2}
"""Faults of a kind within one stack operation: CloudFormation itself gives up a cleanup that fails three times."""
ELSEWHERE = {**CLUSTER["settings"], "region_name": "eu-west-1"}


@dataclass
class Chaos:
    """Faults by a seed. ``calm`` ends them. ``cruel``: answers to replacements of clusters are lost, and the requests
    of their rollbacks too."""

    random: random.Random
    cruel: bool = False
    region: Rig | None = None
    calm: bool = False
    budget: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """A stack operation: some faults, of some kinds."""
        self.budget = self.random.choice((0, 1, 2, 4, 6))
        self.counts.clear()

    def strikes(self, step: str) -> bool:
        """Whether a step goes wrong now."""
        if self.cruel and not self.calm and self._is_worst(step):
            self.faults[step] += 1
            return True
        if self.calm or self.budget <= 0 or self.counts[step] >= MOST.get(step, 4) or self.random.random() > 0.2:
            return False
        self.budget -= 1
        self.counts[step] += 1
        self.faults[step] += 1
        return True

    def _is_worst(self, step: str) -> bool:
        if self.region is None or not self.region.runner.requests.sent:
            return False
        runner = self.region.runner
        request = runner.requests.sent[-1].request
        if (request["RequestType"], request["LogicalResourceId"]) != ("Update", "Cluster"):
            return False
        (stack,) = runner.stacks.values()
        if stack.status == "UPDATE_ROLLBACK_IN_PROGRESS":
            return step == "request lost"
        return (
            step == "invocation"
            and runner.provider.invocations[-1][0] == "isComplete"
            and len(self.region.product.things()["Cluster"]) > 1
        )

    def through(self, send: Exchange) -> Exchange:
        """An exchange whose requests, or their answers, are lost at times."""

        def exchange(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
            if self.strikes("api request"):
                raise Busy("it is not reached")
            reply = send(method, url, headers, body)
            if self.strikes("api answer"):
                raise Busy("the answer is lost")
            return reply

        return exchange

    def at_work(self, product: Product) -> None:
        """Stockyard at work, now and then."""
        if self.calm or self.random.random() < 0.3:
            product.work()


def templates(choose: random.Random, *, cruel: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A template, and two changes of it: of values, with a replacement (``cruel``: such ones), or refused in the
    middle."""
    changes = (
        yard(2, description="Other", tags={"cost": "7"}),
        yard(1, settings=ELSEWHERE),
        yard(2, settings=ELSEWHERE, description="Other"),
        yard(-1, settings=ELSEWHERE, lab={"display_name": "A lab"}),
        yard(-1, description="Other", tags={}),
        yard(1, pool="others", lab={"display_name": "A lab"}),
        {"Resources": {name: body for name, body in yard()["Resources"].items() if name != "Workers"}},
    )
    first = yard(-1) if choose.random() < 0.15 and not cruel else yard()
    return first, [changes[1], changes[2]] if cruel else choose.choices(changes, k=2)


def story(region: Rig, chaos: Chaos) -> Counter[str]:
    """Creates a stack, changes it twice, and deletes it; the states in which operations ended."""
    statuses: Counter[str] = Counter()
    first, changes = templates(chaos.random, cruel=chaos.cruel)
    chaos.begin()
    with suppress(StackFailed):
        region.runner.create("platform", first)
    (stack,) = region.runner.stacks.values()
    statuses[stack.status] += 1
    for change in changes:
        if stack.status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED"):
            break
        chaos.begin()
        with suppress(StackFailed):
            region.runner.update(stack, change)
        statuses[stack.status] += 1
        check(region, stack)
    chaos.begin()
    with suppress(StackFailed):
        region.runner.delete(stack)
    chaos.calm = True
    if stack.status != "DELETE_COMPLETE":
        region.runner.delete(stack)
    statuses[stack.status] += 1
    region.settle()
    return statuses


def check(region: Rig, stack: Deployed) -> None:
    """After a complete operation there is one of each resource that the stack has, as the stack says."""
    if not stack.status.endswith("COMPLETE"):
        return
    things = region.product.things()
    for logical, kind in (("Cluster", "Cluster"), ("Lab", "NodeProvider"), ("Workers", "Pool")):
        resource = stack.resources.get(logical)
        assert things[kind] == ([resource.data["Name"]] if resource is not None else []), (stack.status, logical)


def run(seed: int, note: Callable[[Chaos, Counter[str]], None] = lambda _chaos, _statuses: None) -> None:
    chaos = Chaos(random.Random(seed), cruel=seed % 4 == 3)
    noted = bool(seed % 2) and not chaos.cruel
    with rig(chaos.strikes, through=chaos.through, at_work=chaos.at_work, notes_failed_ids=noted) as region:
        chaos.region = region
        before = region.product.things()
        statuses = story(region, chaos)
        assert region.product.things() == before, f"seed {seed}"
        refused = [fault for pending in region.runner.requests.sent for fault in pending.faults]
        assert refused == [], f"seed {seed}"
        note(chaos, statuses)


def test_nothing_is_left_and_nothing_is_twice_whatever_is_lost(soaking: bool, record_property: Any) -> None:
    count = 200 if soaking else 6
    ends: Counter[str] = Counter()
    faults: Counter[str] = Counter()

    def note(chaos: Chaos, statuses: Counter[str]) -> None:
        ends.update(statuses)
        faults.update(chaos.faults)

    for number in range(count):
        run(SEED * 1_000 + number, note)
    record_property("figure:stack interleavings", {"runs": count, "ended": dict(ends), "faults": dict(faults)})
    if soaking:
        assert faults.keys() == {
            *(
                "request lost",
                "request twice",
                "request late",
                "request too late",
                "invocation",
                "answer",
                "answer twice",
            ),
            *("api request", "api answer"),
        }
        assert ends.keys() >= {"CREATE_COMPLETE", "ROLLBACK_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}
        assert ends["UPDATE_ROLLBACK_FAILED"] > count / 10, "stacks whose replacement nobody knows"
