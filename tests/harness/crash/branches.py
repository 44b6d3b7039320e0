"""Cells of a crash matrix, judged by lives that share their beginnings: a life is the same up to its fault, so the
process forks where the fault is to happen, and only what comes after it is lived anew."""

from __future__ import annotations

import gc
import json
import os
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tests.harness.crash.cells import HANGS, Cell, Course, Hanging, judge, live, verdict
from tests.harness.crash.faults import Call, Fault
from tests.harness.crash.world import CrashWorld


class _Enough(BaseException):
    """All forks are made. Not an ``Exception``, so that nothing in the product can catch it."""


def judge_all(
    world: CrashWorld, selection: Sequence[Cell], whole: Counter[str], processes: int = 1
) -> Mapping[Cell, list[str]]:
    """``judge`` for each of the cells, by so many processes at once."""
    stories: defaultdict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in selection:
        stories[(cell.story, cell.seed)].append(cell)
    answers: dict[Cell, list[str]] = {}
    for cells in stories.values():
        answers |= _Trunk(world, cells, whole, processes).judged() if len(cells) > 1 else {}
    # A story's only cell, and a call that did not come.
    return {cell: answers[cell] if cell in answers else judge(world, cell, whole) for cell in selection}


class _Trunk:
    """The life of a story without a fault, which forks at the calls of the cells."""

    def __init__(self, world: CrashWorld, cells: Sequence[Cell], whole: Counter[str], processes: int) -> None:
        self._world, self._whole, self._processes = world, whole, processes
        self._story, self._seed = cells[0].story, cells[0].seed
        self._by_call: defaultdict[Call, list[Cell]] = defaultdict(list)
        for cell in cells:
            self._by_call[cell.call].append(cell)
        self._course = Course(on_call=self._on_call)
        self._answers: dict[Cell, list[str]] = {}
        self._children: list[tuple[Cell, int, int]] = []  # process id, pipe to read from
        self._own: tuple[Cell, int] | None = None  # of a child: its cell, and the pipe to write to

    def judged(self) -> Mapping[Cell, list[str]]:
        """The answers of the cells whose calls came."""
        try:
            with suppress(_Enough):
                self._branch()
        except BaseException:
            if self._own is not None:
                traceback.print_exc()
                os._exit(1)
            raise
        self._reap(0)
        return self._answers

    def _branch(self) -> None:
        try:
            life = live(self._world, self._story, self._seed, course=self._course)
        except HANGS as error:
            if self._own is None:
                raise
            self._end([f"{type(error).__name__}: {error}"])
        if self._own is not None:
            self._end(verdict(self._world, self._own[0], life, self._whole))

    def _end(self, answer: list[str]) -> None:
        assert self._own is not None
        with os.fdopen(self._own[1], "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)

    def _on_call(self, call: Call) -> None:
        for cell in self._by_call.pop(call, ()):
            self._reap(self._processes - 1)
            if self._forked(cell):
                return
        if not self._by_call:
            raise _Enough

    def _forked(self, cell: Cell) -> bool:
        """Whether this is the child, to which the cell's fault is about to happen."""
        readable, writable = os.pipe()
        with warnings.catch_warnings():
            # The threads of the test runner need nothing from the child.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process:
            os.close(writable)
            self._children.append((cell, process, readable))
            return False
        gc.disable()  # it would touch, and so copy, all that both have
        self._own = (cell, writable)
        self._course.on_call = self._world.tap.on_call = lambda _: None
        self._course.fault, self._course.variant = Fault(cell.call, cell.mode), cell.variant
        self._world.tap.faults.insert(0, self._course.fault)
        return True

    def _reap(self, most: int) -> None:
        """Wait until at most so many children are left."""
        while len(self._children) > most:
            cell, process, readable = self._children.pop(0)
            with os.fdopen(readable) as pipe:
                text = pipe.read()
            if os.waitpid(process, 0)[1]:
                raise Hanging(f"the process that judges {cell} has died")
            self._answers[cell] = json.loads(text)
