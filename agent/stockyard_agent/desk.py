"""Where commands lie: carries out what is due, and keeps each result until Stockyard no longer sends its command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from . import drain, manifests, nodes, tokens
from .kubernetes import Kubernetes, Refused
from .transport import Unreachable
from .work import FAILED, RUNNING, Command, Result, Unfit, Work, command

DRAIN = "drain"
HANDLERS: Mapping[str, Callable[[Work], Result]] = {
    "bootstrap_token": tokens.bootstrap_token,
    "remove_token": tokens.remove_token,
    "cordon": nodes.cordon,
    "uncordon": nodes.uncordon,
    "taint": nodes.taint,
    "label": nodes.label,
    DRAIN: drain.drain,
    "delete_node": nodes.delete_node,
    "apply": manifests.apply,
}
ROUND_SECONDS = 10.0
"""A round begins no further step of a drain after this time."""


class Desk:
    """State is in memory only: what a crash loses, Stockyard sends again, and every command can be done twice."""

    def __init__(
        self,
        kube: Kubernetes,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        log: Callable[[str], None],
        own_pod: tuple[str, str] = ("", ""),
    ) -> None:
        self._kube, self._now, self._monotonic, self._log, self._own_pod = kube, now, monotonic, log, own_pod
        self._results: dict[str, Result] = {}
        self._rounds = 0
        self._stepped: dict[str, int] = {}

    @property
    def results(self) -> list[dict[str, Any]]:
        """For the next post."""
        return [result.posted(name) for name, result in self._results.items()]

    def take(self, given: Sequence[Any]) -> None:
        """One round of the commands of an answer, in their order; steps of drains last, the longest waiting first.

        A command whose turn does not come is ``running``.
        """
        known = [one for one in given if _recognized(one)]
        if len(known) < len(given):
            self._log(f"{len(given) - len(known)} commands have no id or no kind and are left")
        wanted = {str(one["id"]): one for one in known}
        self._results = {name: kept for name, kept in self._results.items() if name in wanted}
        self._stepped = {name: last for name, last in self._stepped.items() if name in wanted}
        self._rounds += 1
        due = list(filter(None, (self._read(one) for name, one in wanted.items() if not self._finished(name))))
        due.sort(key=lambda one: self._stepped.get(one.id, 0) + 1 if one.kind == DRAIN else 0)
        self._carry_out(due)

    def _carry_out(self, due: Sequence[Command]) -> None:
        end = self._monotonic() + ROUND_SECONDS
        silent = ""
        stuck: set[str] = set()
        for one in due:
            if silent:
                self._keep(one.id, self._again(one, silent))
            elif one.node and one.node in stuck:
                self._keep(one.id, self._again(one, "Waits for an earlier command of its node."))
            elif one.kind == DRAIN and self._monotonic() >= end:
                self._keep(one.id, self._again(one, "Waits for its turn: this round has no time left."))
            else:
                try:
                    result, passing = self._step(one)
                except (Unreachable, OSError) as error:
                    silent = f"The Kubernetes API does not answer: {error}"
                    result, passing = self._again(one, silent), True
                self._keep(one.id, result)
                stuck.update({one.node} if passing else ())

    def _step(self, one: Command) -> tuple[Result, bool]:
        """What comes of one step, and whether a passing refusal stopped it. Raises ``Unreachable``, ``OSError``."""
        handler = HANDLERS.get(one.kind)
        if handler is None:
            return Result(FAILED, f"This agent knows no command {one.kind!r}; it knows {', '.join(HANDLERS)}."), False
        now = self._now()
        if one.kind == DRAIN:
            self._stepped[one.id] = self._rounds
        elif one.deadline is not None and now >= one.deadline:
            return Result(FAILED, "Its deadline passed before it could be carried out."), False
        before = self._results.get(one.id)
        try:
            return handler(Work(self._kube, now, one, before.data if before else {}, self._own_pod)), False
        except Unfit as unfit:
            return Result(FAILED, str(unfit)), False
        except Refused as refused:
            text = _without_secret(one, f"The Kubernetes API refused it: {refused}")
            return (self._again(one, text), True) if refused.passing else (Result(FAILED, text), False)
        except (Unreachable, OSError):
            raise
        except Exception as error:  # an object of a shape that nobody foresaw must not end the agent
            return Result(FAILED, f"It could not be carried out: {type(error).__name__}."), False

    def _again(self, one: Command, text: str) -> Result:
        before = self._results.get(one.id)
        return Result(RUNNING, text, before.data if before else {})

    def _read(self, one: Mapping[str, Any]) -> Command | None:
        try:
            return command(one)
        except Unfit as unfit:
            self._keep(str(one["id"]), Result(FAILED, str(unfit)))
            return None

    def _finished(self, id: str) -> bool:
        return id in self._results and self._results[id].final

    def _keep(self, id: str, result: Result) -> None:
        before = self._results.get(id)
        self._results[id] = result
        if before is None or before.status != result.status:
            self._log(f"{id} {result.status}: {result.message}")


def _without_secret(one: Command, text: str) -> str:
    """The text without the join token of the command, should a vendor ever repeat it."""
    token = one.arguments.get("token")
    if not isinstance(token, str):
        return text
    for part in filter(None, (token, token.partition(".")[2])):
        text = text.replace(part, "...")
    return text


def _recognized(one: Any) -> bool:
    return isinstance(one, dict) and all(isinstance(one.get(name), str) and one[name] for name in ("id", "kind"))
