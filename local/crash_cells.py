"""The crash matrix: a life of one cluster with one fault in it, and the faults that a recorded life allows.

A story is a life with trouble of its own, so that the documents' compensating states are reached and can be crashed.
"""

from __future__ import annotations

import json
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.crash_world import CrashWorld, TwoClusters
from local.faults import Call, Fault, Mode

BODY = {
    "name": "demo",
    "description": "d",
    "cloud_account_id": 1,
    "cluster_type": "k8s",
    "settings": {"key_pair": "my-key"},
}
ROUNDS = 12
"""How often a life is carried on before it counts as hanging."""
STUCK_SECONDS, RETRY_SECONDS = 1801, 901
"""Longer than the sweep's patience with lost executions and with blocked deletions."""

STORIES: dict[str, tuple[Call, ...]] = {
    "clean": (),
    "undone": (Call("provision:network", "ec2.CreateNatGateway", 1),),
    "blocked": (Call("delete:network", "ec2.DeleteVpc", 1),),
}
"""Name -> calls that are refused until a person has looked."""
DOORS = ("relay", "resume", "delete", "machine", "reaper")
"""Places outside the documents that are crashed at the first call of each name only; ``create`` at every call."""
RESUMED, ASKED_AGAIN = 1, 2
"""Bits of a variant: a person resumes what failed; a client sends its failed request again when all is well."""
_ANSWERS = (Mode.TIMEOUT, Mode.THROTTLED, Mode.REFUSED)


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault in one recorded life of a story.

    ``seed`` is the life's: up to the fault the same happens. ``variant`` decides how long things are hidden after it,
    and what people do: ``RESUMED``, ``ASKED_AGAIN``.
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
    """How a life went."""

    created: bool = False
    ready: bool = False
    failed: bool = False
    resumed: bool = False
    blocked: bool = False
    alarmed: bool = False
    """Whether the workflow of the deletion failed, which alarms the operator."""
    fired: bool = False
    """Whether the cell's fault came about."""
    things: Counter[str] = field(default_factory=Counter)
    """What was there, by kind, when the cluster was ready."""
    left: list[str] = field(default_factory=list)
    """What was there after everything."""
    calls: list[Call] = field(default_factory=list)


class Hanging(Exception):
    """A life did not come to an end."""


def live(world: CrashWorld, story: str, seed: int, fault: Fault | None = None, variant: int = RESUMED) -> Life:
    """Create, if it failed resume or not, delete; look at what is left. Raises ``Hanging`` when that never ends."""
    world.reset(seed)
    world.tap.faults = [*([fault] if fault else []), *(Fault(call, Mode.REFUSED) for call in STORIES[story])]
    world.tap.struck = lambda struck: world.vary(variant) if struck is fault else None
    life = Life()
    life.created = _create(world, again=bool(variant & ASKED_AGAIN))
    if life.created:
        _provision(world, life)
        cluster = world.cluster()
        if life.failed and cluster is not None and variant & RESUMED:
            world.tap.lift()
            _accepted(world, "resume", "POST", f"/v1/clusters/{cluster.id}/resume", {})
            life.resumed = True
            _provision(world, life)
        _delete(world, life)
    world.tap.lift()
    world.clock.advance(61)
    world.relay()
    world.relay()
    life.fired = fault.fired if fault else True
    life.calls = world.tap.calls
    life.left = world.left()
    return life


def _accepted(world: CrashWorld, place: str, method: str, path: str, body: Any = None) -> None:
    """A request that is accepted at the latest when all is well again."""
    status, told = world.ask(place, method, path, body)
    if status != 202:
        world.tap.lift()
        status, told = world.ask(place, method, path, body)
    if status != 202:
        raise Hanging(f"{method} {path} is refused though all is well: {status} {told}")


def _create(world: CrashWorld, *, again: bool) -> bool:
    """Whether there is a cluster: accepted, or, when the request was given up, found by a person in the list."""
    if again:
        _accepted(world, "create", "POST", "/v1/clusters", BODY)
    else:
        world.ask("create", "POST", "/v1/clusters", BODY)
    cluster = world.cluster()
    if cluster is not None and cluster.status in ("accepting", "undoing"):
        world.tap.lift()
        world.clock.advance(STUCK_SECONDS)
        world.reap()
    return world.cluster() is not None


def _provision(world: CrashWorld, life: Life) -> None:
    for _ in range(ROUNDS):
        _carry_on(world)
        cluster = world.cluster()
        if cluster is not None and cluster.status == "ready":
            life.ready, life.things = True, Counter(kind for kind, _ in world.things())
            return
        if cluster is not None and cluster.status == "failed":
            life.failed = True
            return
        world.clock.advance(STUCK_SECONDS)
        world.reap()
    raise Hanging(f"the creation does not end: {world.operation()}")


def _delete(world: CrashWorld, life: Life) -> None:
    cluster = world.cluster()
    if cluster is None:
        raise Hanging("the cluster is gone before its deletion")
    _accepted(world, "delete", "DELETE", f"/v1/clusters/{cluster.id}")
    for _ in range(ROUNDS):
        _carry_on(world)
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
        world.clock.advance(patience)
        world.reap()
    raise Hanging(f"the deletion does not end: {world.operation()}")


def _carry_on(world: CrashWorld) -> None:
    world.relay()
    world.states.run()
    if world.states.waiting():
        world.machine_reports()
        world.states.run()
    if world.states.waiting():
        world.states.expire()
        world.states.run()


def tasks(world: CrashWorld) -> set[str]:
    """``document:state`` of every task of both documents."""
    found = set()
    for name, text in world.documents.items():
        states = json.loads(text)["States"]
        found |= {f"{name}:{state}" for state, spec in states.items() if spec["Type"] == "Task"}
    return found


def recordings(world: CrashWorld, seed: int) -> dict[str, tuple[int, Life]]:
    """A life of each story without the fault of a cell, and its seed."""
    seeds = {story: seed * 1_000_003 + number for number, story in enumerate(STORIES)}
    return {story: (own, live(world, story, own)) for story, own in seeds.items()}


def matrix(recorded: Mapping[str, tuple[int, Life]]) -> list[Cell]:
    """All cells: everything of the clean life, and of the others the places that those before do not reach."""
    known: set[str] = set()
    found: list[Cell] = []
    for story, (seed, life) in recorded.items():
        found += cells(story, [call for call in life.calls if call.where not in known], seed)
        known |= {call.where for call in life.calls}
    return found


def cells(story: str, calls: Sequence[Call], seed: int) -> list[Cell]:
    """The faults at the calls of a recorded life.

    Every fault at every call that may change something, and at every call of a place that only looks. Reads elsewhere
    repeat the states that the writes leave: of those the first of each name, with the answers it can get.
    """
    found: list[Cell] = []
    seen: set[tuple[str, str]] = set()
    done = 0
    busy = {call.where for call in calls if call.mutating and not call.record}
    for call in calls:
        first = (call.where, call.name) not in seen
        seen.add((call.where, call.name))
        if call.where == "resume":
            done = RESUMED  # by a person, in the recorded life: else its later calls are not reached
        whole = call.mutating or (call.where not in busy and not call.name.startswith("dynamodb."))
        if not first and (not whole or call.where in DOORS):
            continue
        for mode in Mode if whole else _ANSWERS:
            if not (call.record and mode is Mode.RECORDED):
                variant = random.Random(f"{seed} {call} {mode.value}").getrandbits(32)
                found.append(Cell(story, call, mode, seed, variant | done))
    return found


def sample(every: Sequence[Cell], seed: int) -> list[Cell]:
    """One cell of each phase and of the create handler, and among them one of each mode, chosen by ``seed``."""
    chance = random.Random(seed)
    wanted = list(Mode)
    chance.shuffle(wanted)
    places: dict[str, list[Cell]] = {}
    for cell in every:
        if cell.call.where in DOORS:
            continue
        places.setdefault(cell.call.where, []).append(cell)
    found = []
    for there in places.values():
        mode = next(mode for mode in wanted if any(cell.mode is mode for cell in there))
        wanted.remove(mode)
        wanted.append(mode)
        found.append(chance.choice([cell for cell in there if cell.mode is mode]))
    return found


def judge(world: CrashWorld, cell: Cell, whole: Counter[str]) -> list[str]:
    """What is wrong with the life that the cell's fault struck; nothing when all is well.

    ``whole``: what is there when a cluster is ready.
    """
    fault = Fault(cell.call, cell.mode)
    try:
        life = live(world, cell.story, cell.seed, fault, cell.variant)
    except (Hanging, TwoClusters) as error:
        return [f"{type(error).__name__}: {error}"]
    wrong = [f"left: {thing}" for thing in life.left]
    if not life.fired:
        wrong.append("the fault never fired")
    if life.ready and life.things != whole:
        wrong.append(f"ready with {dict(life.things - whole)} too much, {dict(whole - life.things)} too little")
    if life.created and not (life.ready or life.failed):
        wrong.append("neither ready nor failed")
    if life.resumed and not life.ready:
        wrong.append("not ready after it was resumed")
    if cell.mode is Mode.REFUSED and cell.call.where.startswith("delete:") and not (life.blocked or life.alarmed):
        wrong.append("nobody was told of a refused deletion")
    return wrong


def judge_all(
    world: CrashWorld, chosen: Sequence[Cell], whole: Counter[str], processes: int = 1
) -> dict[Cell, list[str]]:
    """What is wrong with each of the cells. Each of the ``processes`` has a copy of the world, made by a fork."""
    if processes == 1:
        return {cell: judge(world, cell, whole) for cell in chosen}
    parts = [chosen[number::processes] for number in range(processes)]
    children = [_forked(lambda part=part: [judge(world, cell, whole) for cell in part]) for part in parts]  # type: ignore[misc]
    found: dict[Cell, list[str]] = {}
    for part, (process, answers) in zip(parts, children, strict=True):
        with os.fdopen(answers) as told:
            text = told.read()
        if os.waitpid(process, 0)[1]:
            raise Hanging("a process that judges cells has died")
        found |= zip(part, json.loads(text), strict=True)
    return found


def _forked(work: Callable[[], Any]) -> tuple[int, int]:
    """A child that writes what ``work`` returns, as JSON: its process and where to read."""
    readable, writable = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the runner's own threads need nothing from the child
        process = os.fork()
    if process:
        os.close(writable)
        return process, readable
    status = 1
    try:
        with os.fdopen(writable, "w") as out:
            json.dump(work(), out)
        status = 0
    finally:
        os._exit(status)
