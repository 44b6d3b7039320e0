"""Route of an HTTP API that takes a path, as API Gateway chooses it."""

from __future__ import annotations

from collections.abc import Iterable

from stockyard.edge import paths


def route_key(method: str, path: str, templates: Iterable[str]) -> str:
    """The key of the route with the fewest parameters among ``templates``, ``$default`` when none takes the path."""
    fitting = [template for template in templates if paths.pattern(template).fullmatch(path)]
    return f"{method} {min(fitting, key=lambda template: template.count('{'))}" if fitting else "$default"
