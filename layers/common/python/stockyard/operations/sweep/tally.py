"""Report of a sweep, and how one failing piece keeps none of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ParamSpec

from stockyard.errors import StockyardError

P = ParamSpec("P")


@dataclass(slots=True)
class Tally:
    """Names of what was done, of orphans, of what was removed or refused (``stopped``), and what failed."""

    done: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def attempt(self, piece: str, work: Callable[P, str | None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run one piece and note what it says it has done; its failure is noted and keeps none of the others."""
        try:
            if done := work(*args, **kwargs):
                self.done.append(f"{done} {piece}")
        except StockyardError as error:
            self.failures.append(f"{piece}: {error.error_type}")
        except Exception as error:
            # One record that cannot be worked on must not keep the sweep from all others.
            self.failures.append(f"{piece}: {type(error).__name__}")

    def add(self, part: Tally) -> None:
        """Take over the names of a part of the sweep."""
        for name, values in asdict(part).items():
            getattr(self, name).extend(values)

    def report(self, trusted: bool) -> dict[str, Any]:
        """As the log and the answer of the function show it."""
        return {"distrusted": not trusted, **asdict(self)}
