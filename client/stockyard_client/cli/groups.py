"""Groups of commands."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Group(TyperGroup):
    """A group that answers a call without arguments as ``--help``: on stdout, with exit code 0, as kubectl does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments."""
        asks_nothing = not args and self.no_args_is_help and not ctx.resilient_parsing
        return super().parse_args(ctx, ["--help"] if asks_nothing else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of that name. For a slip only commands are proposed that the help shows; the root,
        whose commands are imported when they are called, has no others."""
        name = args[0] if args else ""
        every = self.commands
        if name not in every and isinstance(every, dict):
            self.commands = {other: every[other] for other in every if not every[other].hidden}
        try:
            return super().resolve_command(ctx, args)
        finally:
            self.commands = every
