"""Cost of the first request of each function in a fresh interpreter, against the cost that no function can avoid.

The baseline is a bare handler: a powertools Logger, one DynamoDB client, one read. A function imports its handler and
answers one event: its GET, or the event that it usually has. The services behind it are one server on loopback that
knows no record. Baseline and functions take turns, in an order that the seed shuffles, so that load on the machine
hits all of them alike; figures are medians. The ratio that counts is of CPU time, which other programs disturb least;
milliseconds and their ratio are wall time.

    python -m benchmarks.cold_start [--runs N] [--seed N]

Prints a table for people, then one JSON line. Exit 1 when a first request costs more than ``LIMIT`` baselines or loads
a package of ``HEAVY``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

from stockyard.adapters.dynamodb import codec
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import Fact, PriceSheet
from stockyard.domain.values import times

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.5
"""How many baselines a first request may cost."""
HEAVY = ("keycloak", "httpx", "kubernetes", "aws_xray_sdk", "requests")
"""Packages that no usual event needs."""
BASELINE = "baseline"
SECONDS = 120
"""Seconds after which a fresh interpreter counts as broken."""

_BASELINE_CODE = """
import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
logger = Logger()
config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard"}, parameter_validation=False)
table = boto3.client("dynamodb", config=config)
"""
_BASELINE_REQUEST = """
table.get_item(TableName="bench", Key={"pk": {"S": "T#bench#Cluster"}, "sk": {"S": "clu_0"}}, ConsistentRead=True)
logger.info("request", extra={"status": 404})
"""
_HANDLER_REQUEST = """
class Context:
    function_name = function_version = invoked_function_arn = aws_request_id = "bench"
    memory_limit_in_mb = 512
    def get_remaining_time_in_millis(self):
        return 60000
try:
    answer = lambda_handler({event!r}, Context())
except Exception as error:
    answer = {{"raised": type(error).__name__}}
"""
_PROBE = """
import sys, time
start, cpu = time.perf_counter(), time.process_time()
{code}
loaded, loaded_cpu = time.perf_counter(), time.process_time()
answer = {{}}
{first}
end, end_cpu = time.perf_counter(), time.process_time()
import json
heavy = [name for name in {heavy!r} if name in sys.modules]
outcome = str(answer.get("statusCode") or answer.get("raised") or "done")
print(json.dumps([loaded - start, end - start, loaded_cpu - cpu, end_cpu - cpu, heavy, outcome]))
"""
_ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
    "STOCKYARD_TABLE": "bench",
    "STOCKYARD_BUS": "bench",
    "STOCKYARD_ISSUER": "https://id.example/realms/bench",
    "STOCKYARD_API_URL": "https://api.example",
    "STOCKYARD_PAGE_KEY_SECRET": "bench/page-key",
    "STOCKYARD_MACHINE_KEY_SECRET": "bench/machine-key",
}
_ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "Query": {"Items": [], "Count": 0, "ScannedCount": 0},
    "DescribeTable": {"Table": {"TableId": "bench", "TableName": "bench", "TableStatus": "ACTIVE"}},
    "PutEvents": {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]},
}
"""The answers of the services by operation. Every other operation gets an empty object."""
_ADMIN = {"sub": "ann", "organization": ["bench"], "realm_access": {"roles": ["stockyard-admin"]}}
_MACHINE = {"sub": "service", "organization": ["bench"], "azp": "demo-0123456789ab"}


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of one interpreter: wall and CPU, up to the import and up to the answer."""

    imported: float
    ready: float
    imported_cpu: float
    ready_cpu: float
    heavy: tuple[str, ...]
    outcome: str
    """The HTTP status, the class of what was raised, or ``done``."""


def handlers() -> tuple[str, ...]:
    """Names of the functions: the folders of ``functions`` that have a handler."""
    return tuple(sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py")))


def request(
    method: str, path: str, body: str = "", claims: Mapping[str, Any] = _ADMIN, template: str = ""
) -> dict[str, Any]:
    """An HTTP API event of who has these claims; ``template`` is the route's path where it has parameters."""
    payload = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    headers = {"authorization": f"Bearer x.{payload}.x", "content-type": "application/json"}
    context = {"http": {"method": method, "path": path}, "requestId": "r", "authorizer": {"jwt": {"claims": {}}}}
    return {
        "version": "2.0",
        "routeKey": f"{method} {template or path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": context,
        "body": body,
        "isBase64Encoded": False,
    }


_PHASE = {"tenant": "bench", "operation_id": "op_0", "attempt": 1, "action": "run"}
_SCHEDULE = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
EVENTS: Mapping[str, Mapping[str, Any]] = {
    "apply": request("POST", "/v1/apply", "[]"),
    "autoscaler": _SCHEDULE,
    "catalog": _SCHEDULE,
    "cloud_accounts": request("GET", "/v1/cloud-accounts"),
    "cluster_phases": {**_PHASE, "phase": "network", "cluster_id": "clu_0"},
    "cluster_profiles": request("GET", "/v1/cluster-profiles"),
    "clusters": request("GET", "/v1/clusters"),
    "disruptor": _SCHEDULE,
    "machines": request(
        "GET", "/v1/clusters/clu_01KDVJXQ80000000000000000A/agent", claims=_MACHINE, template="/v1/clusters/{id}/agent"
    ),
    "node_claims": request("GET", "/v1/node-claims"),
    "node_phases": {**_PHASE, "phase": "launch", "claim_id": "ncl_0"},
    "node_providers": request("GET", "/v1/node-providers"),
    "pools": request("GET", "/v1/disruption"),
    "reaper": _SCHEDULE,
    "records": request("GET", "/v1/operations"),
    "relay": _SCHEDULE,
    "requests": {"id": "e", "account": "1" * 12, "detail-type": "DeleteCluster", "detail": {"cluster": "none"}},
    "runs": request("GET", "/v1/runs/run_01KDVJXQ80000000000000000A/state", template="/v1/runs/{id}/state"),
    "scheduler": _SCHEDULE,
    "sites": request("GET", "/v1/sites"),
}
"""Function -> its GET, or its usual event. The resources of an event do not exist, so the request ends after a read."""


def probe(subject: str) -> str:
    """The program that measures ``subject``."""
    if subject == BASELINE:
        return _PROBE.format(code=_BASELINE_CODE, first=_BASELINE_REQUEST, heavy=HEAVY)
    code = f"from functions.{subject}.handler import lambda_handler"
    return _PROBE.format(code=code, first=first_request(EVENTS[subject]), heavy=HEAVY)


def first_request(event: Mapping[str, Any]) -> str:
    """The code of a handler's first request, with the event."""
    return _HANDLER_REQUEST.format(event=event)


def environment(url: str) -> dict[str, str]:
    """The environment of a fresh interpreter that reaches the services at that URL."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "layers" / "common" / "python")))
    kept_variables = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}
    return {**kept_variables, **_ENVIRONMENT, "PYTHONPATH": path, "AWS_ENDPOINT_URL": url}


def _price_sheets() -> Mapping[str, Any]:
    """Fresh sheets of the default region, of spot prices too: on most runs the catalogue has nothing to refresh."""
    now = times.to_text(datetime.now(UTC))
    sheets = [PriceSheet(name, now, b"") for name in ("us-east-1", "us-east-1.spot")]
    items = [{**codec.to_item(PLATFORM, sheet), "data": {"B": ""}} for sheet in sheets]
    return {"Items": items, "Count": len(items), "ScannedCount": len(items)}


class _Services(BaseHTTPRequestHandler):
    """DynamoDB and EventBridge that know no record but the catalogue's."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        operation = str(self.headers.get("X-Amz-Target", "")).rpartition(".")[2]
        answer = _ANSWERS.get(operation, {})
        if b"#PriceSheet" in sent:
            answer = _price_sheets()
        elif b"event-account/" in sent:
            answer = {"Item": codec.to_item(PLATFORM, Fact("event-account/" + "1" * 12, "bench", "t"))}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Writes nothing, because only the figures are printed."""


@contextmanager
def services() -> Iterator[str]:
    """The URL of the services."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Services)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def measure(subject: str, url: str) -> Sample:
    """One sample in a fresh interpreter. Raises ``CalledProcessError`` when the subject cannot be imported."""
    done = subprocess.run(
        [sys.executable, "-c", probe(subject)],
        env=environment(url),
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    imported, ready, imported_cpu, ready_cpu, heavy, outcome = json.loads(done.stdout.splitlines()[-1])
    return Sample(imported, ready, imported_cpu, ready_cpu, tuple(heavy), outcome)


def samples(subjects: Sequence[str], runs: int, seed: int) -> dict[str, list[Sample]]:
    """``runs`` samples of each subject, interleaved; one more of each goes first and is thrown away."""
    order, chance = list(subjects), random.Random(seed)
    samples_by_subject: dict[str, list[Sample]] = {subject: [] for subject in subjects}
    with services() as url:
        for run in range(runs + 1):
            chance.shuffle(order)
            for subject in order:
                sample = measure(subject, url)
                if run:
                    samples_by_subject[subject].append(sample)
    return samples_by_subject


def rows(samples_by_subject: Mapping[str, Sequence[Sample]]) -> list[dict[str, object]]:
    """A row per handler: milliseconds and how many baselines they are, worst first."""
    base = median(sample.ready for sample in samples_by_subject[BASELINE])
    base_cpu = median(sample.ready_cpu for sample in samples_by_subject[BASELINE])
    base_least = min(sample.ready_cpu for sample in samples_by_subject[BASELINE])
    measured: list[tuple[float, dict[str, object]]] = []
    for subject, own in samples_by_subject.items():
        if subject == BASELINE:
            continue
        ready, cpu = median(sample.ready for sample in own), median(sample.ready_cpu for sample in own)
        row: dict[str, object] = {
            "handler": subject,
            "answer": own[0].outcome,
            "import_ms": round(median(sample.imported for sample in own) * 1000, 1),
            "import_ratio": round(median(sample.imported_cpu for sample in own) / base_cpu, 2),
            "ready_ms": round(ready * 1000, 1),
            "ratio": round(cpu / base_cpu, 2),
            "least_ratio": round(min(sample.ready_cpu for sample in own) / base_least, 2),
            "wall_ratio": round(ready / base, 2),
            "heavy": sorted({name for sample in own for name in sample.heavy}),
        }
        measured.append((cpu, row))
    return [row for _, row in sorted(measured, key=lambda pair: -pair[0])]


def failures(table: Sequence[Mapping[str, object]]) -> list[str]:
    """The missed limits, one line each."""
    slow = [f"{row['handler']}: {row['ratio']} baselines" for row in table if float(str(row["ratio"])) > LIMIT]
    return slow + [f"{row['handler']} loads {row['heavy']}" for row in table if row["heavy"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the figures, and checks the limits."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.cold_start", description="Cost of the first request of every function"
    )
    parser.add_argument("--runs", type=int, default=9, help="interpreters per handler")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which they take turns")
    options = parser.parse_args(arguments)
    subjects = (BASELINE, *handlers())
    samples_by_subject = samples(subjects, options.runs, options.seed)
    table = rows(samples_by_subject)
    base_ms = round(median(sample.ready for sample in samples_by_subject[BASELINE]) * 1000, 1)
    print(f"{'handler':<16}{'import':>12}{'ratio':>7}{'answered':>13}{'ratio':>7}{'least':>7}{'wall':>7}  answer")
    for row in table:
        print(
            f"{row['handler']:<16}{row['import_ms']:>9} ms{row['import_ratio']:>7}"
            f"{row['ready_ms']:>10} ms{row['ratio']:>7}{row['least_ratio']:>7}{row['wall_ratio']:>7}  {row['answer']}"
        )
    wrong = failures(table)
    figures = {
        "benchmark": "cold_start",
        "seed": options.seed,
        "workload": {"runs": options.runs, "subjects": len(subjects), "python": sys.version.split()[0]},
        "baseline_ms": base_ms,
        "limit": LIMIT,
        "rows": table,
        "failures": wrong,
    }
    print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
