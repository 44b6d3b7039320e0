"""People who change a device in the middle: what was ordered is taken back, nothing of theirs is switched or wiped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.values.times import to_text
from stockyard.errors import NodeCouldNotBeProvisioned, StockyardError, VendorError
from stockyard.ports import Outcome
from stockyard.providers.clouds.bcm.devices import Device
from stockyard.providers.clouds.bcm.errors import DeviceChanged
from stockyard.providers.clouds.bcm.marks import MAY_INSTALL, Marks, without_lines
from tests.harness.bcm.hands import HostClaim, provider
from tests.harness.bcm.yard import WORD, HeadYard

SPEC = provider({"name": "cpu", "nodeGroups": ["cpu"]})


class Story:
    """One claim for the only host that is free, and a person."""

    def __init__(self, *, names: tuple[str, ...] = ("node001",)) -> None:
        self.yard = HeadYard(names=names)
        self.before = self.yard.devices()
        self.leases: dict[str, str] = {}
        self.claim = HostClaim(self.yard, SPEC, 1, self.leases)

    @property
    def device(self) -> Device:
        """The host as it is now."""
        return Device(self.yard.head_node.named("node001"))

    @property
    def notes(self) -> str:
        """Notes of the host."""
        return self.device.notes

    def write(self, **changes: Any) -> None:
        """The person changes the host."""
        self.yard.head_node.write(self.device.uuid, changes)

    def calls(self) -> list[str]:
        """Power calls so far."""
        return [call.operation for call in self.yard.head_node.power_calls]

    def steps(self, count: int, step: Callable[[Any], Outcome]) -> None:
        """So many steps of a phase."""
        self.claim.run(step, count)


def until(story: Story, stage: str, step: Callable[[Any], Outcome]) -> None:
    """Go on until the host is at that stage."""
    for _ in range(40):
        if story.device.marks is not None and story.device.marks.stage == stage:
            return
        story.steps(1, step)
    raise AssertionError(stage)


def test_the_word_taken_away_before_the_reset_stops_it_and_the_device_is_as_it_was() -> None:
    story = Story()
    until(story, "install", story.claim.source.launch)
    story.write(notes=story.notes.replace(MAY_INSTALL, "mine"))
    refusal = story.claim.launch(3)
    assert isinstance(refusal, StockyardError)
    assert "no stockyard-may-install" in refusal.detail
    done = story.claim.terminate()
    assert isinstance(done, Outcome)
    assert done.done
    assert (story.calls(), story.leases, story.claim.ledger.lines()) == ([], {}, [])
    assert story.notes == WORD.replace(MAY_INSTALL, "mine")
    story.write(notes=WORD)
    assert story.yard.devices() == story.before


def test_an_order_that_a_person_took_away_is_not_taken_for_an_installation() -> None:
    story = Story()
    until(story, "install", story.claim.source.launch)
    story.write(nextInstallMode="")
    story.steps(1, story.claim.source.launch)
    assert (story.calls(), story.device.marks) == ([], None)
    assert isinstance(story.claim.launch(), Outcome), "the word is still there: it is ordered anew"
    assert (story.calls(), story.yard.wipes()["node001"]) == (["RESET"], 1)


def test_a_person_who_takes_a_free_host_meanwhile_keeps_it() -> None:
    story = Story(names=("node001", "node002"))
    story.claim.source.launch(story.claim.work())
    assert list(story.leases) == [story.device.uuid]
    assert "stockyard:" in story.notes
    story.write(notes="mine", finalize="", nextInstallMode="")
    outcome = story.claim.launch()
    assert isinstance(outcome, Outcome)
    assert outcome.facts["machine_id"] == Device(story.yard.head_node.named("node002")).uuid
    assert {call.device["hostname"] for call in story.yard.head_node.power_calls} == {"node002"}


def test_the_word_taken_away_while_it_runs_holds_the_release_until_it_is_back() -> None:
    story = Story()
    story.claim.launch()
    story.write(notes=story.notes.replace(MAY_INSTALL, "mine"))
    waiting = story.claim.terminate(6)
    assert isinstance(waiting, Outcome)
    assert not waiting.done
    assert "still has the claim's data" in waiting.message
    assert waiting.remaining == ("host node001",)
    assert (story.calls(), story.device.next_mode) == (["RESET"], None)
    assert story.device.entity["finalize"] == "#!/bin/sh\necho own\n"
    assert story.leases, "nobody else gets it"
    story.write(notes=story.notes.replace("mine", MAY_INSTALL))
    done = story.claim.terminate()
    assert isinstance(done, Outcome)
    assert done.done
    assert story.calls() == ["RESET", "RESET"]
    assert story.yard.wipes()["node001"] == 2
    assert story.yard.devices() == story.before


def test_our_line_taken_away_frees_the_host_as_it_is() -> None:
    story = Story()
    story.claim.launch()
    story.write(notes=without_lines(story.notes))
    assert story.claim.source.look(story.claim.work()).state == "gone"
    with pytest.raises(VendorError, match="marks of this claim"):
        story.claim.source.power(story.claim.work(), "Reboot")
    done = story.claim.terminate()
    assert isinstance(done, Outcome)
    assert done.done
    assert story.calls() == ["RESET"]
    assert story.yard.devices() == story.before


def test_the_word_taken_away_before_the_wipe_takes_its_order_back() -> None:
    story = Story()
    story.claim.launch()
    until(story, "wipe", story.claim.source.terminate)
    assert story.device.next_mode == "FULL"
    story.write(notes=story.notes.replace(MAY_INSTALL, "mine"))
    story.steps(3, story.claim.source.terminate)
    assert (story.calls(), story.device.next_mode) == (["RESET"], None)
    assert story.device.marks is not None
    assert story.device.marks.stage == "run"


def test_a_wipe_whose_order_a_person_took_away_is_ordered_again() -> None:
    story = Story()
    story.claim.launch()
    until(story, "wipe", story.claim.source.terminate)
    story.write(nextInstallMode="")
    story.claim.terminate()
    assert story.yard.wipes()["node001"] == 2
    assert story.yard.devices() == story.before


def test_a_node_that_became_a_head_node_is_never_touched_again() -> None:
    story = Story()
    story.claim.launch()
    story.write(childType="HeadNode")
    revision = story.device.entity["revision"]
    for step in (lambda work: story.claim.source.power(work, "Off"), story.claim.source.terminate):
        story.steps(4, step)
    assert (story.calls(), story.device.entity["revision"]) == (["RESET"], revision)


def test_what_a_person_wrote_meanwhile_stays() -> None:
    story = Story()
    story.claim.launch()
    story.write(notes=f"{story.notes}\nfan is loud", finalize="#!/bin/sh\necho another\n", userdefined1="x")
    story.claim.terminate()
    entity = story.device.entity
    assert (entity["notes"], entity["finalize"], entity["userdefined1"]) == (
        f"{WORD}\nfan is loud",
        "#!/bin/sh\necho another\n",
        "x",
    )


def test_a_device_that_was_removed_is_over() -> None:
    story = Story()
    story.claim.launch()
    uuid = story.device.uuid
    del story.yard.head_node.devices[uuid]
    assert story.claim.source.look(story.claim.work()).state == "gone"
    done = story.claim.terminate()
    assert isinstance(done, Outcome)
    assert (done.done, story.leases) == (True, {})


def test_a_reset_that_comes_to_nothing_is_sent_again_later_and_later() -> None:
    story = Story()
    until(story, "install", story.claim.source.launch)
    hardware = story.yard.head_node.hardware[story.device.uuid]
    moments: list[float] = []
    begin = story.yard.clock.now()
    for _ in range(2 * 60 * 2):
        story.steps(1, story.claim.source.launch)
        hardware.stop()  # its power supply is broken
        if len(story.calls()) > len(moments):
            moments += [(story.yard.clock.now() - begin).total_seconds()] * (len(story.calls()) - len(moments))
    resets = story.calls().count("RESET")
    assert 3 <= resets <= 6, (resets, moments)
    done = story.claim.terminate()
    assert isinstance(done, Outcome)
    assert done.done
    assert story.yard.devices() == story.before


def test_a_device_whose_power_cannot_be_switched_fails_and_is_as_it_was() -> None:
    story = Story()
    story.yard.head_node.unplugged.add(story.device.uuid)
    refusal = story.claim.launch()
    assert isinstance(refusal, VendorError)
    assert "says that it failed" in refusal.detail
    story.claim.terminate()
    assert (story.yard.devices(), story.leases) == (story.before, {})


def test_two_claims_and_one_host_one_wins() -> None:
    story = Story()
    other = HostClaim(story.yard, SPEC, 2, story.leases)
    story.claim.source.launch(story.claim.work())
    refusal = other.launch()
    assert type(refusal).__name__ == "InsufficientCapacity"
    assert (other.ledger.lines(), list(story.leases.values())) == ([], [story.claim.id])
    story.claim.launch()
    assert type(other.launch()).__name__ == "InsufficientCapacity"
    story.claim.terminate()
    assert type(other.launch()).__name__ == "InsufficientCapacity", "it is being wiped"
    story.yard.clock.advance(60)
    assert isinstance(other.launch(), Outcome)


def test_two_tenants_and_one_host_the_marks_decide() -> None:
    """Accounts of two tenants have no lease in common: who finds the marks of another goes away."""
    story = Story()
    other = HostClaim(story.yard, SPEC, 2, {})
    both = (story.claim, other)
    for claim in both * 3:
        claim.run(claim.source.launch, 1)
    owners = {story.device.marks.resource if story.device.marks is not None else None}
    outcomes = [claim.launch() for claim in both]
    (winner,) = [claim for claim, result in zip(both, outcomes, strict=True) if isinstance(result, Outcome)]
    assert owners == {winner.id}
    assert story.calls() == ["RESET"]


def test_another_claim_of_an_orphan_is_left_alone_by_the_sweep() -> None:
    story = Story()
    story.claim.launch()
    cloud, account = story.yard.cloud(), story.yard.account
    (thing,) = cloud.tagged(account, "inst", "acme", ())
    assert list(cloud.tagged(account, "another", "acme", ())) == []
    for wrong in ({"tenant": "globex"}, {"kind": "vm"}, {"resource_id": "ncl_another"}):
        assert not cloud.discard(account, replace(thing, **wrong), "acme")
    assert story.calls() == ["RESET"]
    for _ in range(20):
        if cloud.discard(account, thing, "acme"):
            break
        story.yard.clock.advance(60)
        object.__setattr__(cloud, "now", story.yard.clock.now)
    assert story.yard.devices() == story.before
    assert story.yard.wipes()["node001"] == 2


def test_a_sweep_that_comes_often_does_not_reset_what_boots() -> None:
    story = Story()
    story.claim.launch()
    cloud, account = story.yard.cloud(), story.yard.account
    (thing,) = cloud.tagged(account, "inst", "acme", ())
    for _ in range(6):
        cloud.discard(account, thing, "acme")
        story.yard.clock.advance(2)
    assert story.calls() == ["RESET", "RESET"]


def test_a_claim_without_a_cluster_is_refused_before_anything_is_written() -> None:
    story = Story()
    work = story.claim.work()
    with pytest.raises(NodeCouldNotBeProvisioned):
        story.claim.source.launch(replace(work, cluster=None))
    assert story.yard.devices() == story.before


def test_marks_say_when_they_were_reset() -> None:
    marks = Marks("i", "t", "r", "1", "d", "install")
    now = to_text(HeadYard().clock.now())
    once = marks.reset_at("installing", now)
    assert [(m.stage, m.at, m.tries) for m in (once, once.reset_at("installing", now), once.to("run"))] == [
        ("installing", now, 1),
        ("installing", now, 2),
        ("run", "-", 0),
    ]


def test_a_change_that_a_revision_does_not_show_is_seen_all_the_same() -> None:
    story = Story()
    head_node = story.yard.access().client("acme", story.yard.account)
    device = head_node.device(story.device.uuid)
    assert device is not None
    story.yard.head_node.devices[device.uuid]["notes"] = "mine"
    with pytest.raises(DeviceChanged):
        head_node.update(device, {"nextInstallMode": "FULL"})
    assert story.device.next_mode is None
