"""A sweep whose scopes are swept in the same process, one after another, for tests that look at its whole effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stockyard.operations.services import Services
from stockyard.operations.sweep import run
from stockyard.ports import Clock, Registry


class Reaper:
    """As ``operations.sweep.run.Reaper``; the report is of everything."""

    def __init__(self, registry: Registry, clock: Clock, services_of: Callable[[str], Services]) -> None:
        self.services_of = services_of
        self.scopes: list[tuple[str, str]] = []
        self._reaper = run.Reaper(registry, clock, services_of, self._keep)

    def _keep(self, tenant: str, scope: str) -> None:
        self.scopes.append((tenant, scope))

    def run(self, *, reconciled: bool = False) -> dict[str, Any]:
        """One sweep and all of its scopes."""
        self.scopes.clear()
        report = self._reaper.run(reconciled=reconciled)
        for tenant, scope in self.scopes:
            part = self._reaper.sweep_scope(tenant, scope)
            report = {
                name: value or part[name] if name == "distrusted" else value + part[name]
                for name, value in report.items()
            }
        return report

    def look_at_nodes(self, tenant: str, cluster_id: str) -> dict[str, Any]:
        """See ``operations.sweep.run.Reaper``."""
        return self._reaper.look_at_nodes(tenant, cluster_id)
