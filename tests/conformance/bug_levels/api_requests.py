"""The levels ``apply`` and ``simulate``: requests to the API, answered by its functions in this process.

The tenant has a ready cluster on EC2, and a provider of EC2 instances.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from functions.apply import handler as apply_handler
from functions.pools import handler as pools_handler
from stockyard import wiring
from stockyard.operations.node_providers.catalog import load
from tests.conformance.bug_levels.bench import Bench, ready_cluster
from tests.conformance.bug_levels.reading import (
    Different,
    Json,
    Unreadable,
    absent,
    counts,
    equals,
    judge,
    listed,
    names_of,
)
from tests.harness.crash.world import TENANT, _event
from tests.harness.worlds.inprocess import Context

APPLY_FIELDS = frozenset({"document", "documents", "text"})
SIMULATE_FIELDS = frozenset({"document"})
FAMILIES = ("t3", "m6i", "m7i", "g5", "g6")
LONGEST_SECONDS = 29.0
"""After so long the gateway answers 503, whatever the function does then. The time of the processor is taken for it,
so that a busy machine makes no case fail."""
_PROVIDER = {
    "apiVersion": "stockyard/v1",
    "kind": "NodeProvider",
    "metadata": {"name": "amazon"},
    "spec": {"ec2": {"cloudAccount": 1, "instanceTypes": [f"{family}.*" for family in FAMILIES]}},
}
_ROLES = ("stockyard-operator", "stockyard-admin")


@dataclass(frozen=True)
class Answer:
    """Answer to a request."""

    status: int
    body: Json


class Requests:
    """Plays cases of both levels, one after the other, in one world. Nothing that they ask for is made."""

    def __init__(self, bench: Bench) -> None:
        ready_cluster(bench)
        self.number = 0
        answer = self.ask("/v1/apply", [_PROVIDER])
        assert answer.status == 200, answer.body

    def apply(self, case: Mapping[str, Json]) -> None:
        """Play one case of ``apply``. Raises ``Different`` or ``Unreadable``."""
        given_fields = [name for name in APPLY_FIELDS if name in case]
        if len(given_fields) != 1:
            raise Unreadable(f"one of {listed(APPLY_FIELDS)} is needed, not {listed(given_fields)}")
        answer = self.ask("/v1/apply", case[given_fields[0]], "dry_run=true")
        plan = answer.body["plan"] if answer.status == 200 else {}
        errors = [error["pointer"] for error in answer.body.get("errors") or ()]
        remarks = " ".join(remark["detail"] for remark in plan.get("warnings", ()))
        judge(
            case["expected"],
            {
                "status": lambda expected: _status(expected, answer),
                "pointer": lambda expected: None if expected in errors else listed(errors),
                "warning": lambda expected: _warning(expected, remarks),
                "pools": counts(lambda: sum(thing["kind"] == "pool" for thing in plan.get("creates", ()))),
                "types_that_fit": counts(lambda: len(self._fitting(plan))),
                "among_them": lambda expected: _all_among(expected, self._fitting(plan)),
            },
        )

    def simulate(self, case: Mapping[str, Json]) -> None:
        """Play one case of ``simulate``. Raises ``Different`` or ``Unreadable``."""
        answer = self.ask("/v1/simulations", case["document"])
        view = answer.body if answer.status == 200 else {}
        judge(
            case["expected"],
            {
                "status": lambda expected: _status(expected, answer),
                "complete": equals(lambda: view.get("complete")),
                "decisions": counts(lambda: view.get("decision_count", -1)),
                "evictions": counts(lambda: view.get("evictions", -1)),
            },
        )

    def ask(self, path: str, body: Json, query: str = "") -> Answer:
        """Send one request; a body that is a text is one of YAML documents."""
        self.number += 1
        event = _event("POST", path, body, {"roles": _ROLES}, f"case-{self.number}")
        event["rawQueryString"] = query
        if isinstance(body, str):
            event["body"], event["headers"]["content-type"] = body, "application/yaml"
        handler: ModuleType = apply_handler if path == "/v1/apply" else pools_handler
        began = time.process_time()
        try:
            answer = handler.lambda_handler(event, Context(path, "request"))
        except Exception as error:  # as the gateway answers when a function fails
            return Answer(500, {"detail": f"{type(error).__name__}: {error}"})
        if time.process_time() - began > LONGEST_SECONDS:
            return Answer(503, {"detail": f"no answer within {LONGEST_SECONDS:g} s"})
        return Answer(int(answer["statusCode"]), json.loads(answer["body"]))

    def _fitting(self, plan: Mapping[str, Json]) -> set[str]:
        """The names of the types that the plan does not rule out."""
        if not plan:
            raise Different("there is no plan that could say which types fit")
        ruled_out = {remark["detail"].partition(": ")[0] for remark in plan["rejected"]}
        count = sum(group["count"] for group in plan["groups"] if group["rule"] != "Fits")
        if len(ruled_out) != count:
            raise Unreadable(f"the plan names {len(ruled_out)} of the {count} types that it rules out")
        types = load(wiring.services(TENANT)).node_types.values()
        return {node_type.bare for node_type in types if node_type.name not in ruled_out}


def _status(expected: Json, answer: Answer) -> str | None:
    if answer.status == expected:
        return None
    errors = [f"{error['pointer']} {error['detail']}" for error in answer.body.get("errors") or ()]
    return f"{answer.status} {'; '.join(errors) or answer.body.get('detail', '')}".strip()


def _warning(expected: Json, remarks: str) -> str | None:
    """Whether there is a warning, or which words it has."""
    if not isinstance(expected, bool):
        return absent(expected, remarks)
    return None if expected is bool(remarks) else remarks or "none"


def _all_among(expected: Json, types: set[str]) -> str | None:
    return None if set(names_of(expected)) <= types else listed(types)
