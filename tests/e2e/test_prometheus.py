"""A real Prometheus scrapes a tenant's numbers from the served local cloud, with the configuration of the examples."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from local.prometheus.real.build import PROMETHEUS
from local.testing.serving import http
from tests.harness.stories.programs import add_program
from tests.unit.docs.test_metrics import LABELS, NAME, expressions, rules
from tests.unit.docs.test_metrics import PROMETHEUS as EXAMPLES

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = [
    pytest.mark.skipif(bool(PROMETHEUS.missing()), reason=PROMETHEUS.missing() or "built"),
    pytest.mark.timeout(900),
]
COMPARED = re.compile(r" (>|>=) ")
"""What only has values where it is so, as alerts have it."""
LAB = {"nodeTypes": [{"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.25}]}


class Prometheus:
    """A running one. ``url`` is where its API is."""

    def __init__(self, folder: Path, configuration: dict[str, Any]) -> None:
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        (folder / "stockyard-rules.yaml").write_text((EXAMPLES / "stockyard-rules.yaml").read_text())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url, self.log = f"http://{address}/api/v1", folder / "log"
        options = {"config.file": folder / "prometheus.yaml", "storage.tsdb.path": folder / "data"}
        options["web.listen-address"] = address
        with self.log.open("wb") as log:
            command = [str(PROMETHEUS.path), *(f"--{name}={value}" for name, value in options.items())]
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def ask(self, path: str) -> Any:
        """The data of an answer of its API."""
        with urllib.request.urlopen(f"{self.url}/{path}", timeout=30) as answer:  # noqa: S310 - loopback
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The vector that an expression is now."""
        return list(self.ask(f"query?{urllib.parse.urlencode({'query': expression})}")["result"])

    def number(self, expression: str) -> float | None:
        """The one value of an expression, None while there is none."""
        result = self.query(expression)
        return float(result[0]["value"][1]) if result else None

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def cluster(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A ready cluster with two nodes of a price."""
    provider = {"name": "measured", "kind": "simulated", "spec": LAB}
    assert served.call("POST", "/v1/node-providers", provider).status == 201
    created = served.call("POST", "/v1/clusters", body(name="measured")).body
    assert served.operation(created["operation_id"])["status"] == "succeeded"
    pools = f"/v1/clusters/{created['id']}/pools"
    pool = {"name": "priced", "quantity": 2, "provider": "measured"}
    assert served.call("POST", pools, pool).status == 201
    served.wait("the nodes", lambda: served.call("GET", f"{pools}/priced").body["nodes"]["available"] == 2, 300)
    yield created
    assert remove(created["id"])["status"] == "succeeded"
    assert served.call("DELETE", "/v1/node-providers/measured").status in (200, 202, 204)


@pytest.fixture(scope="module")
def prometheus(
    served: Served, cluster: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """One with the example's configuration, but for its addresses and its pace. It has scraped."""
    folder = tmp_path_factory.mktemp("prometheus")
    configuration = yaml.safe_load((EXAMPLES / "prometheus.yaml").read_text())
    (scrape,) = configuration["scrape_configs"]
    login = scrape["oauth2"]
    (folder / "secret").write_text(add_program(served, login["client_id"], ["stockyard-viewer"]))
    login["client_secret_file"] = str(folder / "secret")
    login["token_url"] = f"{served.issuer}/protocol/openid-connect/token"
    url = urllib.parse.urlsplit(served.environment["STOCKYARD_URL"])
    scrape["scheme"], scrape["scrape_interval"], scrape["scrape_timeout"] = url.scheme, "2s", "2s"
    scrape["static_configs"][0]["targets"] = [url.netloc]
    configuration["global"] = {"evaluation_interval": "1s"}
    running = Prometheus(folder, configuration)
    try:
        served.wait("Prometheus", lambda: _answers(running.url), 60)
        served.wait("prices of all", lambda: served.call("GET", "/v1/costs").body["hour"] is not None, 180)
        begin = time.time()
        fresh = "min(stockyard_as_of_timestamp_seconds)"
        served.wait("numbers of now", lambda: (running.number(fresh) or 0) > begin, 180)
        yield running
    finally:
        running.close()


def _answers(url: str) -> bool:
    try:
        return http("GET", f"{url}/status/buildinfo", None, {}).status == 200
    except OSError:
        return False


def test_numbers_are_those_of_the_costs(served: Served, prometheus: Prometheus, cluster: dict[str, Any]) -> None:
    assert prometheus.number('up{job="stockyard"}') == 1
    costs = served.call("GET", "/v1/costs").body
    assert prometheus.number("sum(stockyard_cost_hour_usd)") == pytest.approx(costs["hour"])
    assert prometheus.number("sum(stockyard_month_spent_usd)") == pytest.approx(costs["known_spent"], abs=0.05)
    assert prometheus.number("sum(stockyard_month_forecast_usd)") == pytest.approx(costs["known_forecast"], rel=0.01)
    nodes = sum(line["quantity"] for line in costs["lines"] if line["kind"] == "nodes")
    assert prometheus.number("sum(stockyard_nodes)") == nodes
    own = f'sum(stockyard_cost_hour_usd{{cluster_id="{cluster["id"]}",kind="nodes",tenant="acme"}})'
    assert prometheus.number(own) == pytest.approx(0.5)


def test_each_query_of_the_dashboard_is_answered(prometheus: Prometheus) -> None:
    names = {result["metric"]["__name__"] for result in prometheus.query('{__name__=~"stockyard_.+"}')}
    assert {name for name in LABELS.keys() - names if "budget" not in name} <= {"stockyard_possible_saving_hour_usd"}
    for expression in expressions():
        if expression.startswith("label_values"):
            assert prometheus.ask("label/tenant/values?match[]=stockyard_clusters") == ["acme"]
            continue
        answer = prometheus.query(expression.replace("$tenant", "acme"))
        is_there = set(NAME.findall(expression)) <= names and not COMPARED.search(expression)
        assert answer or not is_there, expression


def test_alerts_are_evaluated(prometheus: Prometheus) -> None:
    def evaluated() -> list[dict[str, Any]]:
        (group,) = prometheus.ask("rules")["groups"]
        return [rule for rule in group["rules"] if rule["health"] != "unknown"]

    end = time.monotonic() + 60
    while len(evaluated()) < len(rules()) and time.monotonic() < end:
        time.sleep(0.5)
    assert {rule["name"]: (rule["health"], rule.get("lastError")) for rule in evaluated()} == {
        rule["alert"]: ("ok", None) for rule in rules()
    }
