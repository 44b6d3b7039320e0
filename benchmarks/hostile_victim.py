"""The tenant that is not hostile: what it asks for, and how it is served. See ``benchmarks/hostile.py``."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.node_claims import percentile, when
from local.testing.serving import Answer, Served
from stockyard.adapters.dynamodb.store import DynamoStore
from stockyard.domain.nodes.manifests import VCLUSTER
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import STATIC, Pool, pool_id
from stockyard.domain.records import Cluster
from stockyard.domain.values import ids, times
from stockyard.errors import Conflict
from stockyard.ports import Put, Replace

INTERVAL_SECONDS = 60.0
"""Between two runs of the schedules, which keep real time in the local cloud."""
LONGEST_PASS_SECONDS = 600.0
PAUSE = 0.5
VICTIM = "STOCKYARD_TOKEN_OTHER"
"""The name of globex's token in the file of the local cloud."""
TABLE, TENANT = "stockyard-dev", "globex"
OWN_PROVIDER = {
    "name": "own",
    "kind": "simulated",
    "spec": {"nodeTypes": [{"name": "n", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}]},
}


def accepted(answer: Answer) -> Any:
    """The body of an answer of success. Raises ``AssertionError`` with the answer's text."""
    if not 200 <= answer.status < 300:
        raise AssertionError(f"{answer.status} {answer.text}")
    return answer.body


def patient(served: Served, method: str, path: str, body: Any = None, **options: Any) -> Answer:
    """A call that waits its turn while the rate limit refuses it."""
    while (answer := served.call(method, path, body, **options)).status == 429:
        time.sleep(0.2)
    return answer


def claim_manifest(name: str, cpu: str, requirements: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A claim of no cluster, as vCluster's platform writes it."""
    spec = {"desiredCapacity": {"cpu": cpu}, "requirements": list(requirements)}
    return {"apiVersion": VCLUSTER, "kind": "NodeClaim", "metadata": {"name": name}, "spec": spec}


def cluster_and_pool(now: datetime) -> tuple[Cluster, Pool]:
    """A cluster of B that is ready, and a pool without nodes: passes over it have little to do but to be on time."""
    moment = times.to_text(now)
    cluster = Cluster(
        id=ids.make(ids.CLUSTER, now, b"0123456789"),
        name="good",
        description="",
        cluster_type="k8s",
        provider="aws",
        cloud_account_id=1,
        client_id="good-0123456789ab",
        status="ready",
        settings={"region_name": "us-east-1"},
        created_at=moment,
        updated_at=moment,
        driver="ec2",
    )
    pool = Pool(pool_id(cluster.id, "none"), cluster.id, "none", moment, moment, kind=STATIC, provider_ref="own")
    return cluster, pool


class Victim:
    """B: what it asks for, and how it is served."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.statuses: Counter[int] = Counter()
        self._store = DynamoStore(served.aws("dynamodb"), TABLE, TENANT)
        accepted(patient(served, "POST", "/v1/node-providers", OWN_PROVIDER, token=VICTIM))
        self._cluster, pool = cluster_and_pool(datetime.now(UTC))
        disruption = ClusterDisruption(self._cluster.id, pool.created_at, pool.created_at)
        self._store.commit(Put(self._cluster), Put(pool), Put(disruption))
        self._pool_id = pool.id

    def measured(self, seconds: float, phase: str) -> dict[str, float]:
        """B's figures of so many seconds."""
        over = threading.Event()
        late: list[float] = []
        passes = threading.Thread(target=self._passes, args=(over, late))
        passes.start()
        reads: list[float] = []
        due: dict[str, float] = {}
        start, number = time.time(), 0
        while (moment := start + number * PAUSE) < start + seconds:
            time.sleep(max(0.0, moment - time.time()))
            body = [claim_manifest(f"good-{phase}-{number}", "1")]
            answer = self._timed("POST", "/v1/apply", body, [])
            if answer.status != 200:
                answer = patient(self._served, "POST", "/v1/apply", body, token=VICTIM)
            due[accepted(answer)["results"][0]["id"]] = moment
            for path in ("/v1/node-claims?page_size=5", "/v1/quotas", f"/v1/clusters/{self._cluster.id}/pools"):
                self._timed("GET", path, None, reads)
            number += 1
        over.set()
        passes.join()
        bound = self._bound(due)
        return {
            "bound_p95_seconds": percentile(bound, 95),
            "api_p95_seconds": round(percentile(sorted(reads), 95), 3),
            "late_seconds": round(max(late, default=0.0), 1),
            "passes": len(late),
            "claims": len(due),
        }

    def _timed(self, method: str, path: str, body: Any, seconds: list[float]) -> Answer:
        began = time.monotonic()
        answer = self._served.call(method, path, body, token=VICTIM)
        seconds.append(time.monotonic() - began)
        self.statuses[answer.status] += 1
        return answer

    def _bound(self, due: Mapping[str, float]) -> list[float]:
        def bound() -> list[float]:
            answers = [
                patient(self._served, "GET", f"/v1/node-claims/{claim_id}", token=VICTIM).body for claim_id in due
            ]
            done = [answer for answer in answers if _is_scheduled(answer)]
            return [when(answer, "Scheduled") - due[answer["id"]] for answer in done] if len(done) == len(due) else []

        return sorted(self._served.wait("B's claims", bound, 600))

    def _passes(self, over: threading.Event, late: list[float]) -> None:
        """Make B's pool and disruption due, and note how long after the schedule's interval both were looked at."""
        while not over.is_set():
            since = time.time()
            waiting: dict[type[Pool] | type[ClusterDisruption], str] = {
                Pool: self._pool_id,
                ClusterDisruption: self._cluster.id,
            }
            moment = times.to_text(datetime.now(UTC) - timedelta(seconds=1))
            for kind, record_id in waiting.items():
                self._set_due(kind, record_id, moment)
            while waiting and not (over.is_set() and time.time() - since < INTERVAL_SECONDS):
                time.sleep(0.5)
                for kind, record_id in list(waiting.items()):
                    record = self._record(kind, record_id)
                    # A pass that ends says that the next one is due in some minutes; one that begins, in half of one.
                    soon = times.to_text(datetime.now(UTC) + timedelta(seconds=INTERVAL_SECONDS))
                    if (record.due_at or "") > soon:
                        del waiting[kind]
                        late.append(max(0.0, time.time() - since - INTERVAL_SECONDS))
                if time.time() - since > LONGEST_PASS_SECONDS:
                    late.append(time.time() - since)
                    return

    def _record(self, kind: type[Pool] | type[ClusterDisruption], record_id: str) -> Pool | ClusterDisruption:
        record: Pool | ClusterDisruption | None = self._store.get(kind, record_id)
        if record is None:
            raise AssertionError(f"{record_id} is gone")
        return record

    def _set_due(self, kind: type[Pool] | type[ClusterDisruption], record_id: str, moment: str) -> None:
        while True:
            record = self._record(kind, record_id)
            with suppress(Conflict):
                self._store.commit(Replace(replace(record, due_at=moment, version=record.version + 1)))
                return


def _is_scheduled(claim: dict[str, Any]) -> bool:
    return any(item["type"] == "Scheduled" and item["status"] == "True" for item in claim["conditions"])
