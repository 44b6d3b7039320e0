"""The crash matrix: a life of one cluster with one fault, and the faults that are possible in a recorded life.

The stories of lives are those of the world's cloud.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.records import Operation
from tests.harness.crash import changes as crash_changes
from tests.harness.crash.cloud import Story
from tests.harness.crash.faults import Call, Fault, Mode
from tests.harness.crash.world import CrashWorld, TwoClusters

ROUNDS = 12
"""How many rounds a life may take before it counts as hanging."""
STUCK_SECONDS, RETRY_SECONDS = 1801, 901
"""Longer than the sweep waits for lost executions and for blocked deletions."""

KEPT_MINUTES = 30
RESUMES = ("resume", "resume_again")
DOORS = (*RESUMES, "relay", "delete", "machine", "reaper", "sweep_scope")
"""Places outside the workflows. Only the first call of each name is crashed there; in ``create`` every call is."""
RESUMED, ASKED_AGAIN = 1, 2
"""Bits of a variant: a person resumes a failed creation; a client repeats its failed request after the fault."""
REFUSAL = "403 Forbidden"
"""How a phase names what the API of a cluster refuses."""
WITHOUT = {"ec2.CreateVpcEndpoint": ("vpc_endpoint",)}
"""Things that a cluster goes without where its cloud refuses to make them, by the call: they only save money."""
_ANSWERS = (Mode.TIMEOUT, Mode.THROTTLED, Mode.REFUSED)


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault in one recorded life of a story.

    ``seed`` is the seed of the life, which is the same up to the fault. ``variant`` decides how long resources are
    hidden after the fault, and what people do: ``RESUMED``, ``ASKED_AGAIN``.
    """

    story: str
    call: Call
    mode: Mode
    seed: int
    variant: int

    def __str__(self) -> str:
        return f"{self.story}-{self.call}-{self.mode.value}"


@dataclass
class Life:
    """Events of a life."""

    created: bool = False
    ready: bool = False
    failed: bool = False
    resumed: bool = False
    blocked: bool = False
    alarmed: bool = False
    """Whether the workflow of the deletion failed, which alarms the operator."""
    fired: bool = False
    """Whether the cell's fault happened."""
    too_late: bool = False
    """Whether the fault hit a call about resources that earlier calls had already removed."""
    things: Counter[str] = field(default_factory=Counter)
    """How many resources existed, by kind, when the cluster was ready."""
    ids: set[str] = field(default_factory=set)
    """The vendor's ids of these resources."""
    wrong: list[str] = field(default_factory=list)
    """What was not as wanted after the story's changes."""
    leftovers: list[str] = field(default_factory=list)
    """The resources that existed after the deletion."""
    messages: dict[str, str] = field(default_factory=dict)
    """What each phase of the deletion said at its end."""
    calls: list[Call] = field(default_factory=list)


class Hanging(Exception):
    """A life does not end."""


HANGS = (Hanging, TwoClusters, crash_changes.Unchanged)


@dataclass
class Course:
    """Course of a life: a fault or none, and what people do, see ``Cell.variant``.

    ``on_call`` is told of each call before that is done, and may change the course.
    """

    fault: Fault | None = None
    variant: int = RESUMED
    on_call: Callable[[Call], None] = lambda _: None


def live(
    world: CrashWorld,
    story: str,
    seed: int,
    fault: Fault | None = None,
    variant: int = RESUMED,
    course: Course | None = None,
) -> Life:
    """Creates a cluster, resumes it or not when that failed, deletes it. Raises ``Hanging`` when this does not end."""
    tale, course = world.cloud.stories[story], course or Course(fault, variant)
    world.reset(seed, story)
    world.tap.on_call = course.on_call
    world.tap.faults = [
        *([course.fault] if course.fault else []),
        *(Fault(call, Mode.REFUSED) for call in tale.refused),
    ]
    life = Life()

    def on_fault(by: Fault) -> None:
        if by is course.fault:
            world.vary(course.variant)
            life.too_late = _too_late(world, life, by.call)

    world.tap.on_fault = on_fault
    body = {**world.cloud.body, "keep_failed": KEPT_MINUTES} if tale.keeps_failed else world.cloud.body
    life.created = _create(world, body, course)
    if life.created:
        _provision(world, life)
        cluster = world.cluster()
        if life.failed and tale.is_swept:
            _sweep_kept(world)
        for point in RESUMES:  # The fault of the cell and the refusal of the story may each end an attempt.
            if life.failed and not life.ready and cluster is not None and course.variant & RESUMED:
                world.repair()
                _accepted(world, point, "POST", f"/v1/clusters/{cluster.id}/resume", {})
                life.resumed = True
                _provision(world, life)
        if life.ready and tale.changes:
            life.wrong = crash_changes.make(world, tale.changes, carry_on)
        _delete(world, life)
        life.messages = _messages(world)
    world.tap.lift()
    world.clock.advance(61)
    world.relay()
    world.relay()
    life.fired = course.fault.fired if course.fault else True
    life.calls = world.tap.calls
    life.leftovers = world.leftovers()
    return life


FINAL = 422
"""The status of what is refused for what it asks."""


def _accepted(
    world: CrashWorld, point: str, method: str, path: str, body: Any = None, *, again: Callable[[], bool] = lambda: True
) -> None:
    """Sends a request. It must be accepted at the latest after all faults are lifted, if it is sent ``again``."""
    status, answer = world.ask(point, method, path, body)
    if status != 202 and again():
        world.tap.lift()
        # A final refusal is the answer of its key for a day: who has mended what it names asks with another one.
        status, answer = world.ask(point, method, path, body, key=f"mended-{point}" if status == FINAL else "")
        if status != 202:
            raise Hanging(f"{method} {path} is refused without any fault: {status} {answer}")


def _create(world: CrashWorld, body: Mapping[str, Any], course: Course) -> bool:
    """Sends the creation. Returns whether a cluster exists then, even if the client gave up its request."""
    _accepted(world, "create", "POST", "/v1/clusters", body, again=lambda: bool(course.variant & ASKED_AGAIN))
    cluster = world.cluster()
    if cluster is not None and cluster.status in ("accepting", "undoing"):
        world.tap.lift()
        world.clock.advance(STUCK_SECONDS)
        world.reap()
    return world.cluster() is not None


def _provision(world: CrashWorld, life: Life) -> None:
    for _ in range(ROUNDS):
        carry_on(world)
        cluster = world.cluster()
        if cluster is not None and cluster.status == "ready":
            life.ready, things = True, world.things()
            life.things, life.ids = Counter(kind for kind, _ in things), {vendor_id for _, vendor_id in things}
            return
        if cluster is not None and cluster.status == "failed":
            life.failed = True
            return
        world.clock.advance(STUCK_SECONDS)
        world.reap()
    raise Hanging(f"the creation does not end: {world.operation()}")


def _sweep_kept(world: CrashWorld) -> None:
    """The time of the machine that is kept passes, and sweeps remove it."""
    for _ in range(ROUNDS):
        cluster = world.cluster()
        if cluster is None or cluster.kept_until is None:
            return
        world.clock.advance(STUCK_SECONDS)
        world.reap()
        world.tap.lift()
    raise Hanging("the machine that is kept stays")


def _delete(world: CrashWorld, life: Life) -> None:
    cluster = world.cluster()
    if cluster is None:
        raise Hanging("the cluster is gone before its deletion")
    _accepted(world, "delete", "DELETE", f"/v1/clusters/{cluster.id}")
    for _ in range(ROUNDS):
        carry_on(world)
        operation = world.operation()
        if operation is None:
            return
        patience = STUCK_SECONDS
        if operation.error is not None:
            life.blocked, patience = True, RETRY_SECONDS
            world.tap.lift()
        elif world.states.failed():
            life.alarmed = True
            world.tap.lift()
        elif world.alarms:
            world.tap.lift()
        world.clock.advance(patience)
        world.reap()
    raise Hanging(f"the deletion does not end: {world.operation()}")


def _messages(world: CrashWorld) -> dict[str, str]:
    """Message of each phase of the deletion; its operation stays when the cluster is gone."""
    operations = world.store.list(Operation, limit=200).items
    return {
        phase.name: phase.message
        for deletion in operations
        if deletion.kind.startswith("delete")
        for phase in deletion.phases
    }


def _too_late(world: CrashWorld, life: Life, call: Call) -> bool:
    """Whether this call to the cloud names resources of the cluster, and none of them exists any more."""
    if call.name.startswith("dynamodb."):
        return False
    named = life.ids & set(_texts(world.tap.parameters))
    return bool(named) and not named & {vendor_id for _, vendor_id in world.things()}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def carry_on(world: CrashWorld) -> None:
    """Let the workflow go on until it ends or nothing answers any more."""
    world.relay()
    world.states.run()
    if world.states.waiting():
        world.machine_reports()
        world.states.run()
    if world.states.waiting():
        world.states.expire()
        world.states.run()


def tasks(world: CrashWorld) -> set[str]:
    """``document:state`` of every task of both workflows."""
    names = set()
    for name, text in world.documents.items():
        states = json.loads(text)["States"]
        names |= {f"{name}:{state}" for state, spec in states.items() if spec["Type"] == "Task"}
    return names


def recordings(world: CrashWorld, seed: int) -> dict[str, tuple[int, Life]]:
    """For each story its seed, and a recorded life without the fault of a cell."""
    seeds = {story: seed * 1_000_003 + number for number, story in enumerate(world.cloud.stories)}
    return {story: (own, live(world, story, own)) for story, own in seeds.items()}


def matrix(stories: Mapping[str, Story], recorded: Mapping[str, tuple[int, Life]]) -> list[Cell]:
    """All cells: those of the clean life, and of each other story those at points that earlier stories do not reach."""
    covered_points: set[str] = set()
    every: list[Cell] = []
    for story, (seed, life) in recorded.items():
        tale = stories[story]
        points = {call.point for call in life.calls} - covered_points | set(tale.own_points)
        every += cells(story, life.calls, seed, points, RESUMED if tale.keeps_failed else 0)
        covered_points |= {call.point for call in life.calls}
    return every


def cells(story: str, calls: Sequence[Call], seed: int, points: Collection[str], done: int = 0) -> list[Cell]:
    """The faults at the calls of a recorded life at these points. ``done``: the variant's bits that every cell has.

    Every fault is possible at every call that may change something, and at every call of a point that only reads. Other
    reads see states that the writes leave, so only the first read of each name gets cells, for bad answers.
    """
    possible: list[Cell] = []
    names_at_points: set[tuple[str, str]] = set()
    busy = {call.point for call in calls if call.mutating and not call.record}
    for call in calls:
        if call.point == "resume":
            done = RESUMED  # A person resumes in the recorded life too. Otherwise its later calls are not reached.
        if call.point not in points:
            continue
        first = (call.point, call.name) not in names_at_points
        names_at_points.add((call.point, call.name))
        whole = call.mutating or (call.point not in busy and not call.name.startswith("dynamodb."))
        if not first and (not whole or call.point in DOORS):
            continue
        for mode in Mode if whole else _ANSWERS:
            if not (call.record and mode is Mode.RECORDED):
                variant = random.Random(f"{seed} {call} {mode.value}").getrandbits(32)
                possible.append(Cell(story, call, mode, seed, variant | done))
    return possible


def sample(stories: Mapping[str, Story], every: Sequence[Cell], seed: int) -> list[Cell]:
    """One cell of each phase and of the create handler, with every mode among them, chosen by ``seed``."""
    chance = random.Random(seed)
    modes = list(Mode)
    chance.shuffle(modes)
    points: dict[tuple[str, str], list[Cell]] = {}
    for cell in every:
        is_own = cell.call.point in stories[cell.story].own_points
        if cell.call.point in DOORS and not is_own:
            continue
        points.setdefault((cell.story if is_own else "", cell.call.point), []).append(cell)
    selection = []
    for there in points.values():
        mode = next(mode for mode in modes if any(cell.mode is mode for cell in there))
        modes.remove(mode)
        modes.append(mode)
        selection.append(chance.choice([cell for cell in there if cell.mode is mode]))
    return selection


def judge(world: CrashWorld, cell: Cell, whole: Counter[str]) -> list[str]:
    """Runs the cell's life and returns what is wrong with it; an empty list when nothing is wrong.

    ``whole``: how many resources of each kind exist when a cluster is ready.
    """
    fault = Fault(cell.call, cell.mode)
    try:
        life = live(world, cell.story, cell.seed, fault, cell.variant)
    except HANGS as error:
        return [f"{type(error).__name__}: {error}"]
    return verdict(world, cell, life, whole)


def verdict(world: CrashWorld, cell: Cell, life: Life, whole: Counter[str]) -> list[str]:
    """Faults of the life of a cell that has ended."""
    wrong = [*life.wrong, *(f"left: {thing}" for thing in life.leftovers)]
    if not life.fired:
        wrong.append("the fault never fired")
    expected = whole - Counter(WITHOUT.get(cell.call.name, ()) if cell.mode is Mode.REFUSED else ())
    if life.ready and life.things != expected:
        wrong.append(f"ready with {dict(life.things - expected)} too much, {dict(expected - life.things)} too little")
    if life.created and not (life.ready or life.failed):
        wrong.append("neither ready nor failed")
    if life.resumed and not life.ready:
        wrong.append("not ready after it was resumed")
    if cell.mode is Mode.REFUSED:
        # A deletion of a hidden resource is repeated. When the resource is gone, a refusal needs no report.
        deletion = cell.call.point.startswith("delete:") and not life.too_late
        # What a deletion does in another way after a refusal is told by its phase.
        is_reported = (
            life.blocked or life.alarmed or REFUSAL in life.messages.get(cell.call.point.partition(":")[2], "")
        )
        if deletion and not is_reported:
            wrong.append("nobody was told of a refused deletion")
        if cell.call.point == "relay" and not cell.call.name.startswith("dynamodb.") and not world.alarms:
            wrong.append("nobody was told of what the relay was refused")
    return wrong
