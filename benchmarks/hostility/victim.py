"""The tenant that is not hostile: what it asks for, and how it is served. See ``benchmarks/hostile.py``."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
PAUSE = 3.0
"""Seconds between two claims of B. The lives of all of them share one core here, which bears some ten times as many."""
LIFE_SECONDS = 20.0
"""After which a claim is deleted, so that B has as many nodes in a minute of quiet as in ten minutes beside A."""
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


@dataclass(slots=True)
class _Wish:
    """A pass that is due: the record that says so, and since when it waits."""

    record_id: str
    since: float
    _due_at: str | None = None

    def is_over(self, due_at: str | None) -> bool:
        """Whether a pass has come to its end. It then says that the next one is due in some minutes; one that begins,
        in half of one. Where another pass changed something meanwhile, a pass is due anew, and the wait with it."""
        now = datetime.now(UTC)
        if due_at != self._due_at and (due_at or "") <= times.to_text(now):
            self.since = now.timestamp()
        self._due_at = due_at
        return (due_at or "") > times.to_text(now + timedelta(seconds=INTERVAL_SECONDS))


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
        bound: list[float] = []
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
            self._end(due, bound, time.time() - LIFE_SECONDS)
            number += 1
        over.set()
        passes.join()
        self._served.wait("B's claims", lambda: self._end(due, bound, time.time()), 600)
        return {
            "bound_p95_seconds": percentile(sorted(bound), 95),
            "api_p95_seconds": round(percentile(sorted(reads), 95), 3),
            "late_seconds": round(max(late, default=0.0), 1),
            "passes": len(late),
            "claims": len(bound),
        }

    def _timed(self, method: str, path: str, body: Any, seconds: list[float]) -> Answer:
        began = time.monotonic()
        answer = self._served.call(method, path, body, token=VICTIM)
        seconds.append(time.monotonic() - began)
        self.statuses[answer.status] += 1
        return answer

    def _end(self, due: dict[str, float], bound: list[float], before: float) -> bool:
        """Delete the claims that were asked for before a moment and have their place, and note how long that took.
        Returns whether none is left."""
        for claim_id in [claim_id for claim_id, moment in due.items() if moment < before]:
            path = f"/v1/node-claims/{claim_id}"
            answer = patient(self._served, "GET", path, token=VICTIM).body
            if _is_scheduled(answer):
                bound.append(when(answer, "Scheduled") - due.pop(claim_id))
                patient(self._served, "DELETE", path, token=VICTIM)
        return not due

    def _passes(self, over: threading.Event, late: list[float]) -> None:
        """Make B's pool and disruption due, and note how long after the schedule's interval each was looked at."""
        while not over.is_set():
            start = time.time()
            waiting = {
                kind: _Wish(record_id, start)
                for kind, record_id in ((Pool, self._pool_id), (ClusterDisruption, self._cluster.id))
            }
            moment = times.to_text(datetime.now(UTC) - timedelta(seconds=1))
            for kind, wish in waiting.items():
                self._set_due(kind, wish.record_id, moment)
            while waiting and not (over.is_set() and time.time() - start < INTERVAL_SECONDS):
                time.sleep(0.5)
                for kind, wish in list(waiting.items()):
                    if wish.is_over(self._record(kind, wish.record_id).due_at):
                        del waiting[kind]
                        late.append(max(0.0, time.time() - wish.since - INTERVAL_SECONDS))
                if time.time() - start > LONGEST_PASS_SECONDS:
                    late.append(time.time() - start)
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
