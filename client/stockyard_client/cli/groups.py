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
