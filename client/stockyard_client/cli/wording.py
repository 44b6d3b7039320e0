"""Help in the words of people: no names of types of the programming language, and summaries that fit on a line."""

from __future__ import annotations

import re
from typing import Any

_END = re.compile(r"[.:;] ")
_NUMBERS = (int, float)


def worded(command: Any) -> Any:
    """The command, and those below it, with help for people. A summary is the first sentence of the help, as far as a
    colon."""
    if command.help and not command.short_help:
        command.short_help = _END.split(command.help.split("\n\n")[0].replace("\n", " "))[0].removesuffix(".") + "."
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            # its name says what it is
            parameter.display_type_rich = _nothing
        elif parameter.metavar is None and not parameter.is_flag and not parameter.type_descriptor.is_choice:
            parameter.metavar = _word(parameter)
    for inner in getattr(command, "commands", {}).values():
        worded(inner)
    return command


def _word(option: Any) -> str:
    """Word that stands for the value: a number, or the option's own name."""
    if option.type_descriptor.annotation in _NUMBERS:
        return "NUMBER"
    return str(option.name).rpartition("_")[2].upper()


def _nothing(ctx: Any) -> None:  # noqa: ARG001  (the signature is Typer's)
    return None
