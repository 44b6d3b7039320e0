"""Resources that one pass over the pools of a large cluster takes: ``python -m benchmarks.pool_pass [--seed N]``.

A tenant has a cluster with 1,000 nodes on EC2 in five pools and 50,000 running pods in 300 groups; its agent posts them
as gzip, with 1,000 pods that wait in 40 groups. A fresh process takes the post with the function's own handler, and
then the event that it gives rise to: the pass that ends with written claims. What both handlers load when they are
first called is part of their CPU time (the catalogue, the packer); the import of their modules stands beside it.

The table is moto's server in this process, behind HTTP: so the CPU time of the other process is what the product takes
itself, with botocore's share and without the table's. Memory is the most that the process ever had. Units are counted
by the sizes of what is read and written, as DynamoDB counts them.

Prints one JSON line with the seed and the workload. Exit 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

MOST_SECONDS, MOST_MB, MOST_WRITE_UNITS = 2.0, 512, 30
"""Limits: CPU of the post and its pass together, peak memory, and write units of the pass for each claim."""
TABLE = "stockyard"
_ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "POWERTOOLS_LOG_LEVEL": "ERROR",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
    "STOCKYARD_TABLE": TABLE,
    "STOCKYARD_BUS": "bench",
    "STOCKYARD_ISSUER": "https://id.example/realms/bench",
    "STOCKYARD_API_URL": "https://api.example",
}
FUNCTIONS = ("machines", "autoscaler")


# --- the process that is measured ---------------------------------------------------------------------------------


def probe(folder: Path, profiled: str) -> dict[str, Any]:
    """Run the events of ``events.json`` one after the other; what each took."""
    from local.recorder import sitecustomize

    sitecustomize.install(str(folder / "calls"))
    events = json.loads((folder / "events.json").read_text(encoding="utf-8"))
    steps = []
    for function, event in events:
        (folder / "calls").write_text("", encoding="utf-8")
        steps.append({"function": function, **_step(function, event, profiled)})
        lines = [json.loads(line) for line in (folder / "calls").read_text(encoding="utf-8").splitlines()]
        for unit in ("read", "write"):
            steps[-1][f"{unit}_units"] = sum(line.get("units", {}).get(unit, 0.0) for line in lines)
        steps[-1]["calls"] = len(lines)
    # Linux counts KB.
    return {"steps": steps, "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}


def _step(function: str, event: Mapping[str, Any], profiled: str) -> dict[str, Any]:
    import cProfile
    import importlib

    class Context:
        function_name = function_version = invoked_function_arn = aws_request_id = "bench"
        memory_limit_in_mb = 512

    began, wall = process_time(), perf_counter()
    handler = importlib.import_module(f"functions.{function}.handler").lambda_handler
    loaded = process_time()
    profile = cProfile.Profile(process_time)
    answer = profile.runcall(handler, event, Context()) if profiled == function else handler(event, Context())
    done_at = process_time()
    if profiled == function:
        import pstats

        stats = pstats.Stats(profile, stream=sys.stderr)
        stats.sort_stats("cumulative").print_stats(70).sort_stats("tottime").print_stats(40)
    return {
        "import_seconds": round(loaded - began, 3),
        "seconds": round(done_at - loaded, 3),
        "wall": round(perf_counter() - wall, 3),
        "answer": answer if function == "autoscaler" else {"status": answer["statusCode"], "body": answer["body"]},
    }


# --- the table, and what is in it ---------------------------------------------------------------------------------


@contextmanager
def served() -> Iterator[str]:
    """moto's server with the table; its address."""
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    from local.aws.corrections.capacity import counted_capacity
    from local.aws.corrections.quick.server import quick_server
    from local.aws.corrections.quick.tables import quick_tables
    from local.aws.corrections.tables import atomic_tables
    from local.testing import direct_table

    with ExitStack() as stack:
        for correction in (quick_server, quick_tables, counted_capacity, atomic_tables):
            stack.enter_context(correction())
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        stack.callback(server.stop)
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        os.environ.update({**_ENVIRONMENT, "AWS_ENDPOINT_URL": url})
        direct_table.make(TABLE)
        yield url


def main(arguments: Sequence[str] | None = None) -> int:
    """Fills the table and measures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool_pass")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=FUNCTIONS, default="", help="print where this function's time goes")
    parser.add_argument("--probe", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.probe:
        sys.stdout.write(json.dumps(probe(options.probe, options.profile)) + "\n")
        return 0
    from benchmarks import pool_load
    from stockyard.adapters.dynamodb import calls
    from stockyard.adapters.dynamodb.store import DynamoStore
    from stockyard.ports import Put

    sizes = pool_load.Sizes()
    with served(), tempfile.TemporaryDirectory(prefix="stockyard-bench-") as name:
        folder = Path(name)
        scene = pool_load.load(sizes, options.seed)
        store = DynamoStore(calls.client(), TABLE, pool_load.TENANT)
        for begin in range(0, len(scene.records), 90):
            store.commit(*(Put(record) for record in scene.records[begin : begin + 90]))
        events = [("machines", scene.post), ("autoscaler", scene.woken)]
        (folder / "events.json").write_text(json.dumps(events), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.pool_pass", "--probe", name, "--profile", options.profile]
        command = command if options.profile else command[:-2]
        result = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=600)
    measured = json.loads(result.stdout.splitlines()[-1])
    figures = summary(measured["steps"], measured["peak_mb"])
    workload = {**asdict(sizes), "body_bytes": scene.body_bytes}
    line = {"benchmark": "pool_pass", "seed": options.seed, "workload": workload, **figures}
    sys.stdout.write(json.dumps(line) + "\n")
    within_limits = (
        figures["seconds"] <= MOST_SECONDS
        and figures["peak_mb"] <= MOST_MB
        and figures["write_units_a_claim"] <= MOST_WRITE_UNITS
    )
    return 0 if within_limits or options.profile else 1


def summary(steps: Sequence[Mapping[str, Any]], peak_mb: float) -> dict[str, Any]:
    """The figures of both steps. Raises ``AssertionError`` when the post was refused, or no claims came of it."""
    post, following = steps
    claims = following["answer"]["claims_created"]
    if post["answer"]["status"] != 200 or not claims or following["answer"]["lost"]:
        raise AssertionError(steps)
    return {
        "claims": claims,
        "seconds": round(post["seconds"] + following["seconds"], 3),
        "post_seconds": post["seconds"],
        "pass_seconds": following["seconds"],
        "import_seconds": round(post["import_seconds"] + following["import_seconds"], 3),
        "peak_mb": peak_mb,
        "post_write_units": post["write_units"],
        "write_units_a_claim": round(following["write_units"] / claims, 1),
        "read_units_a_claim": round(following["read_units"] / claims, 1),
        "calls": following["calls"],
    }


if __name__ == "__main__":
    sys.exit(main())
