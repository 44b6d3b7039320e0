"""The commands that Stockyard sent: executes them and keeps each result until Stockyard stops sending the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ..kubernetes import Kubernetes, Refused
from ..transport import Unreachable
from . import drain, manifests, nodes, tokens
from .commands import FAILED, RUNNING, Command, CommandContext, InvalidCommand, Result, parse_command

DRAIN = "drain"
HANDLERS: Mapping[str, Callable[[CommandContext], Result]] = {
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
"""After this many seconds a round starts no further drain step, and one that runs leaves the rest to the next round."""


class CommandInbox:
    """Keeps its state in memory only. After a crash Stockyard sends the commands again; all of them are idempotent."""

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
        """The results as the next post sends them."""
        return [result.posted(name) for name, result in self._results.items()]

    def take(self, items: Sequence[Any]) -> None:
        """Carry out one round of the commands that an answer contains, in their order.

        Drain steps come last, and among them the drain that waited longest comes first. A command that this round
        has no time for gets the status ``running``.
        """
        commands = [item for item in items if _recognized(item)]
        if len(commands) < len(items):
            self._log(f"{len(items) - len(commands)} commands have no id or no kind and are left")
        by_id = {str(item["id"]): item for item in commands}
        self._results = {name: result for name, result in self._results.items() if name in by_id}
        self._stepped = {name: last for name, last in self._stepped.items() if name in by_id}
        self._rounds += 1
        due = list(filter(None, (self._read(item) for name, item in by_id.items() if not self._finished(name))))
        due.sort(key=lambda command: self._stepped.get(command.id, 0) + 1 if command.kind == DRAIN else 0)
        self._carry_out(due)

    def _carry_out(self, due: Sequence[Command]) -> None:
        end = self._monotonic() + ROUND_SECONDS
        silent = ""
        stuck: set[str] = set()
        drains = [command for command in due if command.kind == DRAIN]
        for command in due:
            if drains and command.kind == DRAIN and not silent:
                self._close([each for each in drains if each.node not in stuck], lambda: self._monotonic() >= end)
                drains = []
            if silent:
                self._keep(command.id, self._again(command, silent))
            elif command.node and command.node in stuck:
                self._keep(command.id, self._again(command, "Waits for an earlier command of its node."))
            elif command.kind == DRAIN and self._monotonic() >= end:
                self._keep(command.id, self._again(command, "Waits for its turn: this round has no time left."))
            else:
                try:
                    result, transient = self._step(command, lambda: self._monotonic() >= end)
                except (Unreachable, OSError) as error:
                    silent = f"The Kubernetes API does not answer: {error}"
                    result, transient = self._again(command, silent), True
                self._keep(command.id, result)
                stuck.update({command.node} if transient else ())

    def _close(self, drains: Sequence[Command], out_of_time: Callable[[], bool]) -> None:
        """Keep pods off all nodes whose drains begin, before any of these evicts the first one: it might get one of the
        other nodes, and would have to move again."""
        begin = [command for command in drains if command.id not in self._stepped]
        for command in begin if len(begin) > 1 else ():
            if out_of_time():
                return
            try:
                drain.close(CommandContext(self._kube, self._now(), command, {}, self._own_pod, out_of_time))
            except (Unreachable, OSError):
                return
            except Exception:  # noqa: S112 - the step itself does the same again, and says what is wrong
                continue

    def _step(self, command: Command, out_of_time: Callable[[], bool]) -> tuple[Result, bool]:
        """The result of one step, and whether a transient error stopped it. Raises ``Unreachable``, ``OSError``."""
        handler = HANDLERS.get(command.kind)
        if handler is None:
            return Result(
                FAILED, f"This agent knows no command {command.kind!r}; it knows {', '.join(HANDLERS)}."
            ), False
        now = self._now()
        if command.kind == DRAIN:
            self._stepped[command.id] = self._rounds
        elif command.deadline is not None and now >= command.deadline:
            return Result(FAILED, "Its deadline passed before it could be carried out."), False
        before = self._results.get(command.id)
        try:
            progress = before.data if before else {}
            return handler(CommandContext(self._kube, now, command, progress, self._own_pod, out_of_time)), False
        except InvalidCommand as error:
            return Result(FAILED, str(error)), False
        except Refused as refused:
            text = _without_secret(command, f"The Kubernetes API refused it: {refused}")
            return (self._again(command, text), True) if refused.transient else (Result(FAILED, text), False)
        except (Unreachable, OSError):
            raise
        except Exception as error:  # an object of an unexpected shape must not end the agent
            return Result(FAILED, f"It could not be carried out: {type(error).__name__}."), False

    def _again(self, command: Command, text: str) -> Result:
        before = self._results.get(command.id)
        return Result(RUNNING, text, before.data if before else {})

    def _read(self, item: Mapping[str, Any]) -> Command | None:
        try:
            return parse_command(item)
        except InvalidCommand as error:
            self._keep(str(item["id"]), Result(FAILED, str(error)))
            return None

    def _finished(self, id: str) -> bool:
        return id in self._results and self._results[id].final

    def _keep(self, id: str, result: Result) -> None:
        before = self._results.get(id)
        self._results[id] = result
        if before is None or before.status != result.status:
            self._log(f"{id} {result.status}: {result.message}")


def _without_secret(command: Command, text: str) -> str:
    """The text without the command's join token, in case an API's error message repeats the token."""
    token = command.arguments.get("token")
    if not isinstance(token, str):
        return text
    for part in filter(None, (token, token.partition(".")[2])):
        text = text.replace(part, "...")
    return text


def _recognized(item: Any) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(name), str) and item[name] for name in ("id", "kind"))
