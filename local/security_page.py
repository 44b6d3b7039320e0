"""Page of what may come in from outside: each route, each message, each call of a machine. See ``local.openapi``.

Routes are those of the functions, messages those of the template that the local cloud deploys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockyard.edge.contract import Route
    from stockyard.edge.route import HttpFunction

PAGE = Path("docs/security-routes.md")
TEMPLATE = Path(__file__).resolve().parent / "dev_stage" / "Stockyard-dev.template.json"
_HEAD = """# Routes, messages and calls of machines

This page is made from the code by `make openapi`. What stands behind each row is in [security](security.md).

## Routes of people

Each wants a token of the realm, which API Gateway checks; `tests/api/one_cloud/test_authorization.py` calls each with
each kind of token, and `tests/api/one_cloud/test_tenants.py` as another tenant. *If-Match* names the version that was
read; *key* is an `Idempotency-Key`; *plan* is a dry run.

"""
_MACHINES = """
## Calls of machines

*Own client*: the cluster's client in the realm, for its own cluster alone (`tests/api/one_cloud/test_own_claims.py`).
*Proof*: a signed request of the machine's role or the token of its user data; any other is answered 401, whether the id
is there or not (`tests/api/one_cloud/test_tenants.py`, `tests/contracts/test_attestor.py`).

"""
_OPEN = """
## Routes of everybody

"""
_MESSAGES = """
## Messages

A function that serves no route is begun by one of these, or by another function whose role names it; what it may do is
its own role's (`tests/stacks/test_least_privilege.py`). What fails goes to the function's queue of failures.

"""
_SENDERS: Mapping[str, str] = {
    "stockyard.request": "an account that the bus admits; its tenant follows from the account, and a secret is refused",
    "stockyard": "our functions; no other account may put events of this source",
    "schedule": "EventBridge of our account",
    "stream": "the table's stream: what our functions have written",
    "workflow": "the relay, for a record that names the operation; each state has the operation's fence",
}
_TYPES = {
    "AWS::Events::Rule": "rule",
    "AWS::Lambda::EventSourceMapping": "stream",
    "AWS::StepFunctions::StateMachine": "workflow",
}


def page(functions: Sequence[HttpFunction]) -> str:
    """The page of these functions."""
    from stockyard.edge.identity import ROLE_NAMES

    routes = sorted(((route, function.name) for function in functions for route in function.routes), key=_order)
    people = [pair for pair in routes if pair[0].roles]
    machines = [pair for pair in routes if pair[0].machine or (pair[0].body is not None and pair[0].open_because)]
    opened = [pair for pair in routes if pair[0].open_because and pair not in machines]

    def roles(route: Route) -> str:
        names = [name.removeprefix("stockyard-") for name, role in ROLE_NAMES.items() if role in route.roles]
        return ", ".join(names)

    columns = ["route", "function", "roles", "body", "asks for", "audited"]
    rows = ([_name(r), f, roles(r), _body(r), _demands(r), _audited(r)] for r, f in people)
    parts = [_HEAD, *_table(columns, rows), _MACHINES]
    rows = ([_name(r), "own client" if r.machine else "proof", _body(r), r.summary, _audited(r)] for r, _ in machines)
    parts += [*_table(["route", "known by", "body", "what it is", "audited"], rows), _OPEN]
    rows = ([_name(r), r.open_because, r.summary] for r, _ in opened)
    parts += [*_table(["route", "why without a token", "what it is"], rows), _MESSAGES]
    return "".join([*parts, *_table(["message", "what it is", "begins", "who sends it"], _messages())])


def _order(pair: tuple[Route, str]) -> tuple[str, str]:
    return pair[0].path, pair[0].method


def _name(route: Route) -> str:
    return f"`{route.name}`"


def _body(route: Route) -> str:
    from stockyard.edge.http.body import LARGE, LIMIT

    if route.body is None:
        return "none"
    text = f"{(LARGE if route.large else LIMIT) // 1024} KiB"
    return f"{text}, gzip" if route.large else text


def _demands(route: Route) -> str:
    kinds_of_headers = {"If-Match": route.if_match, "key": route.idempotent, "plan": route.dry_run}
    return ", ".join(name for name, holds in kinds_of_headers.items() if holds) or "nothing"


def _audited(route: Route) -> str:
    return route.action if route.audited else "no"


def _messages() -> Iterator[list[str]]:
    resources = json.loads(TEMPLATE.read_text(encoding="utf-8"))["Resources"]
    names = {key: _function_name(entry) for key, entry in resources.items() if entry["Type"] == "AWS::Lambda::Function"}
    lines = []
    for entry in resources.values():
        kind = _TYPES.get(entry["Type"])
        if kind is None:
            continue
        properties = entry["Properties"]
        functions = sorted({names[key] for key in _references(properties) if key in names})
        if kind == "rule":
            pattern = properties.get("EventPattern") or {}
            source = pattern.get("source", ["schedule"])[0]
            description = f"{properties['Description']} ({properties.get('ScheduleExpression') or source})"
            name = properties["Name"]
        elif kind == "stream":
            source, description, name = "stream", "Items of the table that were written", f"stream of {functions[0]}"
        else:
            source, name = "workflow", properties["StateMachineName"]
            description = "The phases of an operation, one state each"
        lines.append([f"`{name}`", description, ", ".join(functions), _SENDERS[source]])
    yield from sorted(lines)


def _function_name(entry: Mapping[str, Any]) -> str:
    return str(entry["Properties"]["FunctionName"]).removeprefix("stockyard-dev-").replace("-", "_")


def _references(tree: Any) -> Iterator[str]:
    """The resources whose ARN or name a document has."""
    if isinstance(tree, dict):
        if isinstance(tree.get("Ref"), str):
            yield tree["Ref"]
        if isinstance(tree.get("Fn::GetAtt"), list):
            yield tree["Fn::GetAtt"][0]
        tree = list(tree.values())
    if isinstance(tree, list):
        for value in tree:
            yield from _references(value)


def _table(columns: Sequence[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |\n|{' -- |' * len(columns)}\n"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n"
