"""Cells of crash matrices with people: an act at a step of a life, alone or with a fault after it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.workflows.faulty_cloud import DEATHS, Site
from tests.workflows.people.acts import ACTS

SOON = 6
"""A fault of the sample comes with one of so many writes and calls after the act."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``number`` is that of the write or call with the fault; -1 for none. ``story`` is what the life begins with."""

    act: str
    at_step: int
    number: int = -1
    fault: str = ""
    site: Site | None = None
    story: str = ""

    def __str__(self) -> str:
        point_text = f" ({self.site.name} in {self.site.point})" if self.site is not None else ""
        crash = f", {self.fault} at {self.number}{point_text}" if self.fault else ""
        return f"{self.story} {self.act} at step {self.at_step}{crash}".strip()


def with_faults(
    cell: Cell, sites: Sequence[Site], before: int, faults_of: Callable[[Site], Iterable[str]], most: int | None = None
) -> Iterator[Cell]:
    """The act alone, and with faults after it.

    ``sites`` are the writes and calls of its life, and ``before`` how many there were before the act. Each name in a
    place has each fault once, at one of its times; with ``most`` there are so many cells, of as many kinds of faults as
    can be.
    """
    chance = random.Random(f"{cell}")
    numbers: dict[Site, list[int]] = defaultdict(list)
    for number, site in enumerate(sites[before:], before):
        numbers[site].append(number)
    cells = [
        Cell(cell.act, cell.at_step, chance.choice(there), fault, site, cell.story)
        for site, there in numbers.items()
        for fault in faults_of(site)
    ]
    yield cell
    if most is None:
        yield from cells
        return
    by_fault: dict[str, list[Cell]] = defaultdict(list)
    for each in chance.sample(cells, len(cells)):
        by_fault[each.fault].append(each)
    yield from [there[0] for there in by_fault.values()][:most]


def sample(sites_at: Sequence[int], seed: int, most: int = len(ACTS), story: str = "") -> list[Cell]:
    """So many acts once, at steps that are spread over the life, and with a worker's death soon after.

    ``sites_at`` says how many writes and calls of the life without an act came before each step.
    """
    chance = random.Random(f"{seed} {story} people")
    acts = chance.sample([*ACTS], most)
    steps = [index * len(sites_at) // most for index in range(most)]
    return [
        Cell(act, step, sites_at[step] + chance.randrange(SOON), chance.choice(DEATHS), story=story)
        for act, step in zip(acts, steps, strict=True)
    ]
