"""Commands that are imported when they are called: the help and one command do not wait for all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer

from stockyard_client.cli.groups import Group
from stockyard_client.cli.wording import worded


@dataclass(frozen=True, slots=True)
class Command:
    """Place of a command: a function, or the group of commands that a module calls so. ``help`` is its line in the help
    of what it belongs to: the first sentence of its own help."""

    module: str
    attribute: str
    help: str

    def load(self, name: str) -> Any:
        """The command, called ``name``."""
        target = getattr(import_module(f"stockyard_client.cli.{self.module}"), self.attribute)
        if isinstance(target, typer.Typer):
            target.info.cls = Group
            command: Any = typer.main.get_group(target)
        else:
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.command(name)(target)
            command = typer.main.get_command(alone)
        command.name = name
        return worded(command)


class Commands(MutableMapping[str, Any]):
    """Name -> command, each made when it is asked for."""

    def __init__(self, table: Mapping[str, Command]) -> None:
        self._table = dict(table)
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._table[name].load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._table[name]
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._table or name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._table, *self._loaded]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def lines(self) -> list[tuple[str, str]]:
        """Name and line of help of each command of the table; none of them is imported for it."""
        return [(name, command.help) for name, command in self._table.items()]
