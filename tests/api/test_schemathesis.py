"""Generated requests against the served API: no 5xx, no undocumented status, no schema break.

They run twice: over the document itself, and over the same document narrowed to resources that exist here, because
most requests that are generated from the first are refused before they reach a use case. ``STOCKYARD_SOAK`` raises the
count to at least 5,000 cases in all, ``STOCKYARD_SEED`` chooses the seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.aws.accounts import OWN_ACCOUNT
from stacks.names import Names
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import NodeEnvironment
from stockyard.ports import Create
from tests.api.narrowed import LAB, MANIFEST, POOL, PROFILE, narrowed

CONFIG = Path(__file__).with_name("schemathesis.toml")
HOOKS = Path(__file__).with_name("generator_hooks.py")
ALL = "as it is"
"""The name of the run over the document itself."""
PEOPLE = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
NEVER = {
    "POST /v1/clusters/{id}/bootstrap": "no generated proof is a machine's",
    "POST /v1/clusters/{id}/boot-reports": "no generated proof is a machine's",
    "POST /v1/clusters/{id}/snapshot-reports": "no generated proof is a machine's",
    "GET /v1/clusters/{id}/snapshots": "the cluster's settings ask for no snapshots",
    "POST /v1/clusters/{id}/restore": "the cluster's settings ask for no snapshots",
    "POST /v1/node-claims/{id}/boot-reports": "no generated proof is a machine's",
    "POST /v1/node-claims/{id}/interruptions": "no generated proof is a machine's",
    "POST /v1/node-claims/{id}/join": "no generated proof is a machine's",
    "POST /v1/node-claims/{id}/member-reports": "no generated proof is a machine's",
    **{
        f"{method} /v1/runs/{{id}}/{part}": "no generated token is a run's"
        for method, part in (
            ("POST", "begin"),
            ("POST", "log"),
            ("POST", "end"),
            ("GET", "state"),
            ("POST", "state"),
            ("DELETE", "state"),
            ("PUT", "lock"),
            ("DELETE", "lock"),
        )
    },
    "POST /v1/clusters/{id}/token": "people log in to the cluster, and its cloud admits nobody",
    "POST /v1/clusters/{id}/resume": "the cluster's operation has not failed",
    "PUT /v1/clusters/{id}/profiles": "its operation would be in the way of all other changes of the cluster",
    "DELETE /v1/cluster-profiles/{id}": "left out: it would take away what the others ask for",
    "POST /v1/node-claims/{id}/power": "the claim waits, and only a node that is there can be switched",
    "DELETE /v1/clusters/{id}": "left out: it would take away what the others ask for",
    "DELETE /v1/clusters/{id}/pools/{name}": "left out: it would take away what the others ask for",
    "DELETE /v1/cloud-accounts/{id}": "the account is in use",
    "DELETE /v1/node-claims/{id}": "left out: it would take away what the others ask for",
    "DELETE /v1/os-images/{id}": "left out: it would take away what the others ask for",
    "DELETE /v1/sites/{id}": "left out: it would take away what the others ask for",
    "DELETE /v1/node-providers/{id}": "left out: it would take away what the others ask for",
}
"""Operations that generated requests cannot bring to success, and why."""
BY_CHANCE = {
    "POST /v1/cluster-profiles",
    "PUT /v1/cluster-profiles/{id}",
    "POST /v1/cloud-accounts",
    "POST /v1/clusters",
    "POST /v1/clusters/{id}/cancel",
    "POST /v1/clusters/{id}/repave",
    "PATCH /v1/clusters/{id}/repave",
    "POST /v1/clusters/{id}/certificates/renew",
}
"""Operations whose success hangs on whether a generated change of the cluster is at work just then, and the creation of
clusters, most of whose generated settings break a rule between two fields. The creation of an account succeeds where it
is the example: a role or an access key, which a schema cannot say. Of thousands of generated packs one may be a list of
Kubernetes objects; else others make profiles and their versions by the route."""

FEWER = """
[phases.coverage.generation]
mode = "positive"
"""
"""Without the soak, only ``fuzzing`` makes invalid requests: ``coverage`` would break each schema in every way."""


@pytest.fixture(scope="module")
def run_reports():
    """Results of each run of this file, by the name of the run."""
    return {}


@pytest.fixture
def run(api, seed, tmp_path, run_reports):
    """Runs schemathesis over a document and keeps what it did in ``run_reports``."""

    def generate(name, document, examples, phases, *options, token, config=""):
        source, report, stream = map(tmp_path.joinpath, ("openapi.json", "report.json", "events.ndjson"))
        source.write_text(json.dumps(document), encoding="utf-8")
        config_path = tmp_path / "schemathesis.toml"
        config_path.write_text(CONFIG.read_text(encoding="utf-8") + config, encoding="utf-8")
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config_path), "run", str(source)]
        command += ["--url", api.cloud.url, "-H", f"Authorization: Bearer {token}", "--seed", str(seed), "--no-color"]
        # an answer may wait for news for 20 seconds
        command += ["--request-timeout", "30"]
        command += ["--max-examples", str(examples), "--phases", phases, "--continue-on-failure", "--warnings", "off"]
        command += ["--report", "json,ndjson", "--report-json-path", str(report), "--report-ndjson-path", str(stream)]
        began = time.monotonic()
        done = subprocess.run(
            [*command, *options],
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert report.exists(), done.stdout + done.stderr
        findings = json.loads(report.read_text(encoding="utf-8"))
        assert (done.returncode, findings["failures"], findings["errors"]) == (0, [], []), done.stdout
        statuses = answered(stream)
        run_reports[name] = {
            "cases": findings["test_cases"]["generated"],
            "operations": findings["operations"]["tested"],
            "statuses": sum(statuses.values(), Counter()),
            "yaml": sum(counts.total() for label, counts in statuses.items() if label.endswith(YAML)),
            "succeeded": {
                label.removesuffix(f" {YAML}")
                for label, counts in statuses.items()
                if any(200 <= each < 300 for each in counts)
            },
            "seconds": round(time.monotonic() - began, 1),
        }

    return generate


YAML = "application/yaml"


def answered(stream: Path) -> dict[str, Counter[int]]:
    """Number of answers of each operation with each status; its label is followed by the media type of a YAML body."""

    def calls(value, label) -> Iterator[tuple[str, int]]:
        if isinstance(value, dict):
            label = value.get("label") or label
            if isinstance(value.get("response"), dict) and "request" in value:
                sent = {name.lower(): text for name, text in value["request"]["headers"].items()}
                suffix = f" {YAML}" if YAML in str(sent.get("content-type")) else ""
                yield label + suffix, value["response"]["status_code"]
            else:
                for below in value.values():
                    yield from calls(below, label)
        elif isinstance(value, list):
            for below in value:
                yield from calls(below, label)

    statuses: dict[str, Counter[int]] = defaultdict(Counter)
    with stream.open(encoding="utf-8") as lines:
        for line in lines:
            for label, status in calls(json.loads(line), ""):
                statuses[label][status] += 1
    return statuses


class Existing:
    """A cluster of acme that is being created, an account that no cluster uses, and a token with every role."""

    def __init__(self, api) -> None:
        self._api = api
        self.token = api.token("acme", *PEOPLE, "stockyard-platform")
        self.headers = {"Authorization": f"Bearer {self.token}"}
        # A few clusters are enough: each is really created in the background.
        quota = api.send("PUT", "/v1/quotas/clusters", {**self.headers, "If-Match": '"0"'}, {"limit": 4})
        assert quota.status_code == 200, quota.text
        body = {
            "description": "a cluster",
            "cloud_account_id": 1,
            "cluster_type": "k8s",
            "settings": {"key_pair": "my-key"},
        }
        created = api.send("POST", "/v1/clusters", self.headers, {"name": "existing", **body})
        assert created.status_code == 202, created.text
        pool = {"name": POOL, "quantity": 0}
        made_pool = api.send("POST", "/v1/clusters/existing/pools", self.headers, pool)
        assert made_pool.status_code == 201, made_pool.text
        role = {"role_arn": "arn:aws:iam::222222222222:role/unused"}
        account = {"provider": "aws", "name": "unused", "attributes": role}
        self.unused = str(api.send("POST", "/v1/cloud-accounts", self.headers, account).json()["id"])
        self.provider = api.send("POST", "/v1/node-providers", self.headers, LAB).json()["id"]
        self.profile = api.send("POST", "/v1/cluster-profiles", self.headers, PROFILE).json()["id"]
        site = api.send("POST", "/v1/sites", self.headers, {"name": "room"}).json()
        self.site, self.site_client = site["id"], site["client_id"]
        image = {"name": "noble", "url": "https://images.example.test/noble"}
        self.image = api.send("POST", "/v1/os-images", self.headers, image).json()["id"]
        self.claim = api.send("POST", "/v1/apply", self.headers, MANIFEST).json()["results"][0]["id"]
        for quota in ("nodeclaims", "node_providers"):
            few = api.send("PUT", f"/v1/quotas/{quota}", {**self.headers, "If-Match": '"0"'}, {"limit": 6})
            assert few.status_code == 200, few.text
        self.environment = "nev_01ARZ3NDEKTSV4RRFFQ69G5FAV"
        table = api.cloud.aws.client("dynamodb", api.cloud.aws.keys(OWN_ACCOUNT))
        environment = NodeEnvironment(self.environment, "clu_1", self.provider, "lab", "t", "t")
        DynamoRegistry(table, Names("dev").table).store("acme").commit(Create(environment))

    def ids(self, cluster):
        """Ids in the paths of each kind of resource; some methods have a resource of their own."""
        return {
            "clusters": cluster["id"],
            "pools": cluster["id"],
            "cloud-accounts": "1",
            "patch cloud-accounts": self.unused,
            "operations": cluster["operation_id"],
            "quotas": "clusters",
            "node-providers": self.provider,
            "node-types": "lab.small",
            "node-claims": self.claim,
            "node-environments": self.environment,
            "cluster-profiles": self.profile,
            "os-images": self.image,
            "sites": self.site,
            "runs": "run_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        }

    def versions(self):
        """The current version of each resource that requests change."""
        paths = {
            "clusters": "clusters/existing",
            "pools": f"clusters/existing/pools/{POOL}",
            "cloud-accounts": f"cloud-accounts/{self.unused}",
            "node-providers": f"node-providers/{self.provider}",
            "node-claims": "node-claims/waiting",
            "os-images": f"os-images/{self.image}",
            "allowed-node-types": "allowed-node-types",
            "event-accounts": "event-accounts",
        }
        versions = {kind: self._get(path)["version"] for kind, path in paths.items()}
        # What a profile says has a version of its own.
        profile = self._api.send("GET", f"/v1/cluster-profiles/{self.profile}", self.headers)
        versions["cluster-profiles"] = int(profile.headers["ETag"].strip('"'))
        quotas = {quota["name"]: quota["version"] for quota in self._get("quotas")["items"]}
        return {**versions, "quotas": quotas["clusters"]}

    def _get(self, path):
        answer = self._api.send("GET", f"/v1/{path}", self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ready(self):
        """Waits until the cluster is ready and returns it."""
        pause, end = threading.Event(), time.monotonic() + 120
        while time.monotonic() < end:
            cluster = self._api.send("GET", "/v1/clusters/existing", self.headers).json()
            if cluster["status"] != "preparing":
                break
            pause.wait(0.5)
        assert cluster["status"] == "ready", cluster
        return cluster


@pytest.fixture(scope="module")
def existing(api):
    """The existing resources. They are created before the first run, so that the cluster is ready for the second."""
    return Existing(api)


@pytest.fixture
def document(document_path):
    """The committed document."""
    return json.loads(document_path.read_text(encoding="utf-8"))


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("existing")
def test_generated_requests_get_documented_answers(api, run, document, soaking, all_operations, run_reports):
    phases = "examples,fuzzing,stateful"
    # A tenant that owns nothing, so that links between answers do not lead to resources of the other test.
    run(ALL, document, 110 if soaking else 3, phases, token=api.token("globex", *PEOPLE))
    assert run_reports[ALL]["operations"] == len(all_operations)


REPORT = "clusters/.*/(boot|ready)"
"""Bodies of up to 64 KB."""
ACCOUNTS = "cloud-accounts"
"""As the reports: coverage takes half a minute to make their longest values, which is for the soak."""
CLUSTERS = "v1/clusters$"
"""Each valid one looks into the tenant's account: some sixty of them are for the soak."""
PARTS = {
    "coverage of changes": ("coverage", "--include-method", "PATCH"),
    "fuzzing": ("fuzzing", "--exclude-method", "DELETE"),
}
"""What generates the requests for existing resources, and for which operations. Each is a process, which takes seconds
to start."""
SOAKED = {
    "coverage of creations of clusters": ("coverage", "--include-method", "POST", "--include-path-regex", CLUSTERS),
    "coverage of creations of accounts": ("coverage", "--include-method", "POST", "--include-path-regex", ACCOUNTS),
    "reports of a control plane": ("coverage", "--include-method", "POST", "--include-path-regex", REPORT),
    "coverage of reads and settings": ("coverage", "--include-method", "GET", "--include-method", "PUT"),
    "coverage of creations": (
        *("coverage", "--include-method", "POST"),
        *("--exclude-path-regex", f"{REPORT}|{ACCOUNTS}|{CLUSTERS}"),
    ),
}
"""What only the soak does besides, before the others use up the quotas. Else only ``fuzzing`` asks these operations."""
FUZZED = 4
"""Examples of each operation without the soak: as many as bring every operation to success."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", [*(SOAKED if os.environ.get("STOCKYARD_SOAK") == "1" else ()), *PARTS])
def test_generated_requests_for_existing_resources_get_documented_answers(
    api, run, document, soaking, existing, run_reports, part
):
    phase, *methods = {**PARTS, **SOAKED}[part]
    cluster = existing.ready()
    own = api.token("acme", client_id=cluster["client_id"])
    sites = api.token("acme", client_id=existing.site_client)
    run(
        part,
        narrowed(document, existing.ids(cluster), existing.versions()),
        70 if soaking else FUZZED if phase == "fuzzing" else 2,
        phase,
        *methods,
        token=existing.token,
        config=("" if soaking else FEWER)
        + "".join(
            f'[[operations]]\ninclude-operation-id = "{name}"\nheaders = {{ Authorization = "Bearer {bearer}" }}\n'
            for name, bearer in (
                *((name, own) for name in ("ReportReady", "GetAgent", "GetMirror")),
                *((name, own) for name in ("PostObservations", "PostPendingPods", "RefreshKubeconfigSecrets")),
                ("ExchangeWithSite", sites),
            )
        ),
    )
    assert run_reports[part]["cases"]


def test_every_operation_succeeded_for_existing_resources(run_reports, all_operations):
    succeeded = set().union(*(report["succeeded"] for part, report in run_reports.items() if part != ALL))
    assert {str(operation) for operation in all_operations} - succeeded - BY_CHANCE == set(NEVER)


def test_enough_cases_were_generated(run_reports, soaking, seed, record_property):
    cases, statuses = (
        sum(report["cases"] for report in run_reports.values()),
        sum((report["statuses"] for report in run_reports.values()), Counter()),
    )
    broken = sum(count for status, count in statuses.items() if status >= 500)
    assert (cases >= (5_000 if soaking else 400), broken) == (True, 0)
    in_yaml = sum(report["yaml"] for report in run_reports.values())
    assert in_yaml >= (50 if soaking else 1)
    seconds = {name: report["seconds"] for name, report in run_reports.items()}
    operations = max(report["operations"] for report in run_reports.values())
    counts = {str(status): count for status, count in sorted(statuses.items())}
    figure = {
        "cases": cases,
        "operations": operations,
        "seed": seed,
        "5xx": broken,
        "yaml": in_yaml,
        "statuses": counts,
    }
    record_property("figure:schemathesis", {**figure, "seconds": seconds})
