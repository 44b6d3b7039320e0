"""Changes that wait for days, in the documents that are deployed: one execution hands over to the next one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from local.functions.invocation import Invocation, failure
from stockyard.domain.records import Outbox
from stockyard.errors import StockyardError
from stockyard.lifecycle import history
from stockyard.lifecycle.change_phases import CHANGE_BALANCED
from stockyard.operations.clusters.changes.approval import decide_repave
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.engine import act as engine_act
from stockyard.operations.engine.act import act
from stockyard.operations.engine.step import Step
from stockyard.operations.engine.sweep import CLOSED, CONTINUED, sweep_operation
from stockyard.operations.listing import every
from stockyard.ports import Outcome, Remove
from tests.harness import walk
from tests.harness.worlds import states
from tests.harness.worlds.states import MOST_EVENTS, Execution, States
from tests.unit.operations.clusters.balanced_world import USER, WEB, BalancedWorld, balanced_world

HOUR = timedelta(hours=1)
WORKFLOW = CHANGE_BALANCED.workflow
LABELLED: dict[str, Any] = {"settings": {"autoscaler_node_groups": [{**WEB, "labels": {"tier": "a"}}]}}


@dataclass
class Stage:
    """Plays executions as the relay starts them, by their names. ``acts``: what is done, and when."""

    balanced: BalancedWorld
    acts: list[tuple[timedelta, Callable[[], object]]] = field(default_factory=list)
    text: str = walk.document(CHANGE_BALANCED)
    states: States = field(init=False)

    def __post_init__(self) -> None:
        self.states = States(self.balanced.world.clock, self._invoke)
        self.states.create(WORKFLOW, self.text)
        self.begun = self.balanced.world.clock.now()
        self.balanced.patch(LABELLED)

    @property
    def executions(self) -> list[Execution]:
        return list(self.states.executions.values())

    @property
    def passed(self) -> timedelta:
        return self.balanced.world.clock.now() - self.begun

    def relay(self) -> None:
        """Start what waits, each twice: the second start is none."""
        store = self.balanced.world.services.store
        for item in list(every(store, Outbox)):
            store.commit(Remove(Outbox, item.id))
            for kind, message in item.messages:
                if kind == "workflow" and message["workflow"] == WORKFLOW:
                    starts = [self.states.start(WORKFLOW, message["name"], message["input"]) for _ in range(2)]
                    assert starts[0] is starts[1]

    def run(self) -> list[str]:
        """Until no execution runs. The last state of each."""
        self.relay()
        while running := [execution for execution in self.executions if execution.running]:
            self.states.carry_on(min(running, key=lambda execution: execution.wake or execution.started))
            while self.acts and self.passed >= self.acts[0][0]:
                self.acts.pop(0)[1]()
            self.relay()
        assert not self.acts
        return [execution.state for execution in self.executions]

    def approve(self) -> None:
        decide_repave(self.balanced.world.services, self.balanced.id, approved=True, actor=USER)

    def replace_nodes(self) -> None:
        for _ in range(10):
            self.balanced.meanwhile()

    def sweep(self) -> str | None:
        return sweep_operation(RUNNER, self.balanced.world.services, self.balanced.cluster)

    def _invoke(self, function: str, payload: Any) -> Invocation:
        try:
            step = act(walk.RUNNERS[function], self.balanced.world.services, payload)
        except StockyardError as error:
            return failure(type(error).__name__, str(error))
        return Invocation(json.dumps(step.answer).encode())


@pytest.fixture
def asking() -> BalancedWorld:
    """A cluster whose settings ask for approval."""
    return balanced_world(repave_approval="required")


def test_an_approval_after_47_hours_and_pools_that_wait_for_23_go_on(asking: BalancedWorld) -> None:
    stage = Stage(asking)
    nodes = sorted(claim.name for claim in asking.claims("web"))
    stage.acts = [(47 * HOUR, stage.approve), (70 * HOUR, stage.replace_nodes)]
    assert stage.run() == ["superseded", "changed"]
    assert 70 * HOUR < stage.passed < 71 * HOUR
    assert sorted(asking.replaced) == nodes
    assert asking.operation.status == "succeeded"
    start_times = [execution.started - stage.begun for execution in stage.executions]
    assert start_times[1] - 47 * HOUR < timedelta(minutes=6), "who approves is not waited for"
    events = [execution.events for execution in stage.executions]
    assert max(events) < history.HANDED_OVER_AT, "what does not change is looked at each minute"


def test_what_changes_all_the_time_is_handed_over_until_its_time_is_up(
    asking: BalancedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "HANDED_OVER_AT", 1500)
    texts = iter(range(1_000_000))
    monkeypatch.setitem(
        RUNNER.actions,
        "pools_replaced",
        lambda *_: Outcome(False, f"Look {next(texts)}.", wait_seconds=150),
    )
    stage = Stage(asking)
    stage.acts = [(timedelta(minutes=10), stage.approve)]
    *ends, last = stage.run()
    assert ends == ["superseded", "continued", "continued", "continued"]
    assert (last, asking.operation.error is not None) == ("not_changed", True)
    assert 24 * HOUR < stage.passed < 25 * HOUR
    for execution in stage.executions:
        assert execution.events < history.HANDED_OVER_AT + 50
        assert execution.name.startswith(str(asking.operation.id))
    assert [execution.name[-3:] for execution in stage.executions][1:] == ["1_1", "1_2", "1_3", "1_4"]


def test_a_document_of_the_release_before_dies_and_the_sweep_goes_on(
    asking: BalancedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An execution with that document hands nothing over. The next execution has the document of today. Events and
    looks are a tenth here."""
    monkeypatch.setattr(states, "MOST_EVENTS", MOST_EVENTS // 10)
    document = json.loads(walk.document(CHANGE_BALANCED))
    for state in document["States"].values():
        for name in ("state.$", "retries.$", "execution.$"):
            state.get("Parameters", {}).get("Payload", {}).pop(name, None)
        if state["Type"] == "Wait":
            state |= {"Seconds": 300}
            del state["SecondsPath"]
    stage = Stage(asking, text=json.dumps(document))
    assert stage.run()[0].startswith("approval")
    (first,) = stage.executions
    assert (first.status, first.error) == ("FAILED", "States.Runtime")
    assert first.events >= MOST_EVENTS // 10 - 9
    assert 20 * HOUR < stage.passed < 48 * HOUR
    monkeypatch.setattr(states, "MOST_EVENTS", MOST_EVENTS)
    stage.states.create(WORKFLOW, walk.document(CHANGE_BALANCED))
    assert [stage.sweep(), stage.sweep()] == [CONTINUED, None]
    stage.acts = [(47 * HOUR, stage.approve), (48 * HOUR, stage.replace_nodes)]
    assert stage.run()[1:] == ["superseded", "changed"]


def test_a_first_execution_of_the_release_before_is_fenced_off_by_an_approval(asking: BalancedWorld) -> None:
    stage = Stage(asking)
    payload = {"action": "run", "phase": "checks", **stage_input(stage)}
    assert act(RUNNER, asking.world.services, payload).done
    stage.approve()
    with pytest.raises(StockyardError, match="A later execution"):
        act(RUNNER, asking.world.services, payload)
    assert act(RUNNER, asking.world.services, {**payload, "execution": f"{asking.operation.id}-1_1"}).done


def stage_input(stage: Stage) -> dict[str, Any]:
    return walk.input_of("acme", stage.balanced.cluster)


def test_a_call_that_hands_over_twice_starts_one_execution(asking: BalancedWorld) -> None:
    """The function is ended after its write, and the workflow calls it again."""
    stage = Stage(asking)
    state = {"result": {"answer": {"events": history.HANDED_OVER_AT}}}
    payload = {"action": "run", "phase": "approval", **stage_input(stage), "state": state, "retries": 1}
    payload["execution"] = f"{asking.operation.id}-1"
    assert act(RUNNER, asking.world.services, {**payload, "phase": "checks"}).continued is False, "it is done"
    step = act(RUNNER, asking.world.services, payload)
    assert (step.continued, step.events) == (True, history.HANDED_OVER_AT + 12)
    with pytest.raises(StockyardError, match="A later execution"):
        act(RUNNER, asking.world.services, payload)
    stage.relay()
    assert {execution.name[-2:] for execution in stage.executions} == {"-1", "_1"}
    stage.acts = [(HOUR, stage.approve), (2 * HOUR, stage.replace_nodes)]
    assert sorted(stage.run()) == ["changed", "superseded", "superseded"]


def test_what_is_lost_is_closed_when_its_time_is_up_or_too_early(asking: BalancedWorld) -> None:
    for hours, end in ((1, CLOSED), (47, CONTINUED), (49, CLOSED)):
        balanced = balanced_world(repave_approval="required")
        stage = Stage(balanced)
        act(RUNNER, balanced.world.services, {"action": "run", "phase": "checks", **stage_input(stage)})
        act(RUNNER, balanced.world.services, {"action": "run", "phase": "approval", **stage_input(stage)})
        balanced.world.clock.advance(hours * 3600)
        assert stage.sweep() == end, hours
    assert asking.operation.continuation == 0


def test_undoing_is_given_up_where_there_is_no_room_for_more_looks(
    asking: BalancedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_up: list[bool] = []

    def compensate(*_: object, give_up: bool) -> Any:
        gave_up.append(give_up)
        return Step(give_up, 5)

    monkeypatch.setattr(engine_act, "compensate", compensate)
    payload = {"action": "compensate", **walk.input_of("acme", asking.cluster), "retries": 0}
    for events in (0, history.GIVEN_UP_AT):
        state = {"result": {"answer": {"events": events}}}
        assert act(RUNNER, asking.world.services, {**payload, "state": state}).events == events + 9
    assert gave_up == [False, True]
