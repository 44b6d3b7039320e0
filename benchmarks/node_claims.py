"""Claims in the local cloud, from the request to the node: their duration, throughput and cost.

Claims are sent at moments fixed beforehand, ``--rate`` a second, whatever is answered (an open loop), and counted from
the moment each was due; the machines of the simulated provider take no time here, so all that passes is ours. A burst
by callers that send as fast as answers come tells the throughput.

    python -m benchmarks.node_claims [--claims N] [--rate N] [--burst N]

Prints one JSON line. Exit 1 when 95 in 100 claims take longer than ``SLOWEST``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from local.testing.example import body_without_nodes
from local.testing.serving import Answer, Served, serve

CLIENTS = 8
"""Callers that send one request after the other, as fast as answers come."""
RATE = 2.0
"""Claims a second of the open loop."""
AGAIN = (429, 502, 503, 504)
"""Statuses after which a request is repeated, each time after the next pause of ``PAUSES``."""
PAUSES = (1, 2, 4, 8)
WARM = 8
"""Claims that are sent before the measurement, so that the functions are started."""
SLOWEST = 5.0
"""The limit in seconds for our part of the time of 95 in 100 claims."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one cluster of a served local cloud."""

    served: Served
    cluster: str

    def provider(self, name: str, *types: Mapping[str, Any]) -> None:
        """Register a simulated provider of these types."""
        spec = {"nodeTypes": [dict(type_) for type_ in types]}
        self._expect(201, "POST", "/v1/node-providers", {"name": name, "kind": "simulated", "spec": spec})

    def make(self, name: str, **wish: Any) -> dict[str, Any]:
        """Creates a claim, and returns the accepted claim."""
        return self._expect(202, "POST", "/v1/node-claims", {"name": name, "cluster": self.cluster, **wish})

    def _expect(self, status: int, method: str, path: str, body: Any) -> dict[str, Any]:
        answer = self._sent(method, path, body)
        if answer.status != status:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.text}")
        content: dict[str, Any] = answer.body
        return content

    def _sent(self, method: str, path: str, body: Any = None) -> Answer:
        """Sends a request as clients do: it is repeated without a timely answer, a POST with the same key."""
        key = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
        for pause in PAUSES:
            answer = self.served.call(method, path, body, headers=key)
            if answer.status not in AGAIN and '"RequestInProgress"' not in answer.text:
                return answer
            time.sleep(pause)
        return self.served.call(method, path, body, headers=key)

    def named(self, prefix: str) -> list[dict[str, Any]]:
        """All claims whose name begins with ``prefix``."""
        claims: list[dict[str, Any]] = []
        token = ""
        while True:
            page = self._sent("GET", f"/v1/node-claims?page_size=200{token}").body
            claims += [claim for claim in page["items"] if claim["name"].startswith(prefix)]
            if not page["next_page_token"]:
                return claims
            token = f"&page_token={page['next_page_token']}"

    def remove(self, prefix: str) -> None:
        """Deletes the claims whose name begins with ``prefix``, and waits until they are deleted."""

        def delete(claim: Mapping[str, Any]) -> str:
            answer = self._sent("DELETE", f"/v1/node-claims/{claim['id']}")
            if answer.status not in (202, 404):
                raise AssertionError(answer.text)
            return str(claim["id"])

        with ThreadPoolExecutor(CLIENTS) as pool:
            sent = list(pool.map(delete, self.named(prefix)))
        for claim_id in sent[-CLIENTS:]:  # Reading one claim takes less time than listing all.
            self.served.wait("a claim's end", partial(self._is_gone, claim_id), 1800)
        self.served.wait("the claims' end", lambda: not self.named(prefix), 1800)

    def _is_gone(self, claim_id: str) -> bool:
        return self._sent("GET", f"/v1/node-claims/{claim_id}").status == 404

    def _is_available(self, claim_id: str) -> bool:
        phase: str = self._sent("GET", f"/v1/node-claims/{claim_id}").body["phase"]
        return phase == "Available"

    def sent(self, prefix: str, count: int, rate: float = 1000.0) -> dict[str, float]:
        """Sends claims at fixed moments, ``rate`` a second. Returns by claim id the moment at which each was due."""
        pause = threading.Event()
        start = time.time()

        def send(number: int) -> tuple[str, float]:
            due = start + number / rate
            pause.wait(max(0.0, due - time.time()))
            return str(self.make(f"{prefix}{number}")["id"]), due

        with ThreadPoolExecutor(min(count, 64)) as pool:
            return dict(pool.map(send, range(count)))

    def available(self, prefix: str, due: Mapping[str, float]) -> list[dict[str, Any]]:
        """Waits until all these claims have a node, and returns them."""
        for claim_id in list(due)[-CLIENTS:]:
            self.served.wait("a node", partial(self._is_available, claim_id), 1800)

        def all_there() -> list[dict[str, Any]] | None:
            claims = self.named(prefix)
            return claims if all(claim["phase"] == "Available" for claim in claims) else None

        claims: list[dict[str, Any]] = self.served.wait("the nodes", all_there, 1800)
        if {claim["id"] for claim in claims} != set(due):
            raise AssertionError("a claim is lost")
        return claims

    def measured(self, count: int, burst: int, rate: float = RATE) -> dict[str, dict[str, Any]]:
        """Figures of ``count`` claims of the open loop, of a burst, and of what they cost; ``removed`` ends them."""
        self.provider("instant", {**KIND, "name": "i", "usdPerHour": 0.001})
        self.available("warm-", self.sent("warm-", WARM))
        before = len(self.served.calls)
        due = self.sent("many-", count, rate)
        claims = self.available("many-", due)
        calls = self.served.calls[before:]
        full = self._throughput(burst)
        seconds = sorted(_moment(claim["updated_at"]) - due[claim["id"]] for claim in claims)
        bound = sorted(when(claim, "Scheduled") - due[claim["id"]] for claim in claims)
        return {
            "claims_latency": {
                "claims": count,
                "sent_a_second": rate,
                "warm_up": WARM,
                "p50_seconds": percentile(seconds, 50),
                "p95_seconds": percentile(seconds, 95),
                "slowest_seconds": round(seconds[-1], 2),
                "bound_p50_seconds": percentile(bound, 50),
                "bound_p95_seconds": percentile(bound, 95),
            },
            "claims_throughput": {"claims": burst, "clients": CLIENTS, **full},
            "claims_units": {"claims": count, **units(calls, count)},
        }

    def removed(self) -> dict[str, dict[str, Any]]:
        """Deletes all measured claims, and returns how fast that was."""
        count, began = len(self.named("many-")), time.monotonic()
        self.remove("many-")
        figure = {"claims": count, "deleted_a_second": round(count / (time.monotonic() - began), 2)}
        self.remove("burst-")
        self.remove("warm-")
        return {"claims_removal": figure}

    def _throughput(self, count: int) -> dict[str, float]:
        """Claims bound and available a second, when callers send as fast as answers come."""
        began = time.time()
        with ThreadPoolExecutor(CLIENTS) as pool:
            sent = list(pool.map(lambda number: self.make(f"burst-{number}")["id"], range(count)))
        claims = self.available("burst-", dict.fromkeys(sent, began))
        bound = max(when(claim, "Scheduled") for claim in claims) - began
        available = max(_moment(claim["updated_at"]) for claim in claims) - began
        return {"bound_a_second": round(count / bound, 2), "available_a_second": round(count / available, 2)}


KIND: Mapping[str, Any] = {"resources": {"cpu": "2", "memory": "4Gi"}}


def units(calls: Sequence[Mapping[str, Any]], count: int) -> dict[str, Any]:
    """The cost of a claim from its request to its node: capacity units of the table, and calls."""
    table = [call for call in calls if call["service"] == "DynamoDB"]
    functions = sorted({call["function"] for call in table})

    def total(unit: str, name: str | None = None) -> float:
        calls_of_function = [call for call in table if name in (None, call["function"])]
        units: float = sum(call.get("units", {}).get(unit, 0) for call in calls_of_function)
        return round(units / count, 1)

    often = Counter(str(call["operation"]) for call in calls).most_common(8)
    return {
        "read_units_a_claim": total("read"),
        "write_units_a_claim": total("write"),
        "write_units_by_function": {name: total("write", name) for name in functions},
        "calls_a_claim": {name: round(n / count, 2) for name, n in often},
    }


def percentile(values: Sequence[float], part: int) -> float:
    """The nearest rank of ascending values."""
    return round(values[math.ceil(part / 100 * len(values)) - 1], 2)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def when(claim: Mapping[str, Any], condition: str) -> float:
    """The moment at which a condition became true."""
    status = next(item for item in claim["conditions"] if item["type"] == condition)
    if status["status"] != "True":
        raise AssertionError(f"{condition} is not true: {claim}")
    return _moment(status["last_transition_time"])


def raise_quota(served: Served, limit: int = 5000) -> None:
    """Raises the tenant's quota of claims."""
    quota = next(item for item in served.call("GET", "/v1/quotas").body["items"] if item["name"] == "nodeclaims")
    answer = served.call(
        "PUT",
        "/v1/quotas/nodeclaims",
        {"limit": limit},
        headers={"If-Match": f'"{quota["version"]}"', "X-Stockyard-Tenant": "acme"},
        token="STOCKYARD_TOKEN_PLATFORM",  # noqa: S106 - the name of a line of the file
    )
    if answer.status != 200:
        raise AssertionError(answer.text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves a local cloud, creates a cluster and runs the load."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node_claims")
    parser.add_argument("--claims", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=RATE, help="claims a second (%(default)s)")
    parser.add_argument("--burst", type=int, default=100)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="stockyard-bench-") as folder:
        served = serve(Path(folder) / "home", "--no-limits")
        try:
            raise_quota(served)
            cluster = served.call("POST", "/v1/clusters", body_without_nodes()).body
            operation = served.operation(cluster["operation_id"])
            if operation["status"] != "succeeded":
                raise AssertionError(operation)
            claims = Claims(served, cluster["id"])
            figures = {**claims.measured(options.claims, options.burst, options.rate), **claims.removed()}
        finally:
            served.stop()
    sys.stdout.write(json.dumps({"benchmark": "node_claims", **figures}) + "\n")
    return 0 if figures["claims_latency"]["p95_seconds"] <= SLOWEST else 1


if __name__ == "__main__":
    sys.exit(main())
