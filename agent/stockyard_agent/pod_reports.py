"""The reports of pods: posted soon after the pods that wait have changed, and from time to time in any case."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from . import VERSION
from .api_calls import StockyardRefused
from .cluster.csi import limits as volume_limits
from .cluster.following import WATCH_SECONDS
from .cluster.node_facts import Listed, facts_of, listed_budgets
from .cluster.nodes import Nodes, shortened
from .cluster.pod_state import MOST_GROUPS, PodState, pod_state_of, without_news
from .cluster.pod_templates import node_keys
from .cluster.pods import Pods
from .cluster.sources import READ_SECONDS, Permits, Sources
from .kubernetes import QUIET_SECONDS, Kubernetes, Refused
from .observation import LIMIT, TooLarge, timestamp
from .pacing import BACK_OFF, BACK_OFF_MOST
from .stockyard_api import StockyardApi
from .transport import Unreachable

IDLE_SECONDS, LONGEST_SECONDS = 1.0, 10.0
"""A change is posted when the watch has become quiet behind it, or no other has come for so long, or after the longest
time. Pods come in crowds."""
MOVES_SECONDS = 10.0
"""How soon it is told that only pods on nodes have changed, or what the scheduler says of pods that wait, while pods
wait; otherwise with the next report."""
NODES_SECONDS = 4.0
"""How often it is heard what nodes have changed. That is told at once, also while nobody waits: a node that is closed,
tainted, smaller, lost or back is other room. A node that joins changes many times; it is not told more often."""
REFRESH_SECONDS = 3600.0
"""How often all is told again although nothing has changed."""
SHORTEST, LONGEST = 1.0, 3600.0
"""Bounds of what Stockyard may ask for."""
_UNREADABLE = 422


class PodReports:
    """Watches the pods of the cluster and posts what they are.

    ``jitter`` returns numbers from 0 to 1; ``waiting`` is called when Stockyard has heard of pods that wait anew, or of
    a machine that ends.
    """

    def __init__(
        self,
        kube: Kubernetes,
        stockyard_api: StockyardApi,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        jitter: Callable[[], float],
        log: Callable[[str], None],
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self._kube, self._stockyard = kube, stockyard_api
        self._now, self._monotonic, self._jitter, self._log = now, monotonic, jitter, log
        self._waiting = waiting
        self._pods = Pods(kube, now)
        self._permits = Permits(log)
        self._sources = Sources(kube, monotonic, self._permits)
        self._unplaced = False
        """Whether a pod was left out because of its volumes: nothing tells when they are there."""
        self._sent: PodState | None = None
        self._sequence = self._base = 0
        self._posted_at, self._interval = 0.0, SHORTEST
        self._told = 0
        """How many moves the last report has."""
        self._refusals_told = 0
        """The same of changes of what the scheduler says of pods that wait."""
        self._first_at = self._last_at = 0.0
        """When the first and the last news came that no report has; 0 for none."""
        self._quiet = False
        """Whether the last watch of pods ended because no more came."""
        self._failures = 0
        self._plain_until = 0.0
        """Until when what Stockyard has refused to read is left out: it is of an older release than the agent."""
        self._asked = LONGEST
        """How soon Stockyard wants to hear what moved, by its answer to the last post of the loop."""
        self._listed: Listed | None = None
        self._listed_sent: Listed | None = None
        self._listed_at, self._read_at = -READ_SECONDS, now()
        self._nodes, self._nodes_at = Nodes(kube, monotonic, log), -NODES_SECONDS
        self._nodes_known_at = now()
        self._nodes_told = self._unready_told = 0
        """How many changes of nodes, and how many lost nodes, the last report has."""
        self._label_keys: frozenset[str] | None = None
        """The labels of nodes that rules of pods name, where a report has no room for all labels; None: it has."""
        self._facts_differ = False
        """Whether nodes and budgets are other ones than Stockyard knows of."""
        self._followed_at: datetime | None = None
        self._checked_at: datetime | None = None
        """Until when pods, and nodes and budgets, are known to be as Stockyard was told."""
        self._state: dict[str, Any] | None = None

    @property
    def state(self) -> dict[str, Any] | None:
        """Progress of the reports, for the posts of the loop: the sequence of the last one that Stockyard has, and
        until when the cluster is known to be as it says. None before a first report. Another thread may ask."""
        return self._state

    def ask(self, seconds: float | None) -> None:
        """Tell what moves after so many seconds at the latest; None: as the answers to reports say. Another thread may
        call it."""
        self._asked = LONGEST if seconds is None else min(max(seconds, SHORTEST), LONGEST)

    def run(self, pause: Callable[[float], bool]) -> None:
        """Go on until ``pause(seconds)`` returns True."""
        while not pause(self.step()):
            pass

    def step(self) -> float:
        """Follow the pods for a moment, and post if it is time. Returns the seconds to wait before the next step."""
        began = self._monotonic()
        try:
            self._follow()
            if 0 < self._plain_until <= self._monotonic():
                self._plain_until, self._sent = 0.0, None
            self._follow_nodes()
            self._look()
            if self._is_due():
                self._post()
        except StockyardRefused as refused:
            # What it does not take as it is comes as a whole the next time.
            self._sent = None
            if refused.status == _UNREADABLE:
                self._plain_until = self._monotonic() + REFRESH_SECONDS
            return self._back_off(str(refused), refused.retry_after)
        except Refused as refused:
            return self._back_off(f"the Kubernetes API refused it: {refused}")
        except (Unreachable, TooLarge, OSError, ValueError) as error:
            return self._back_off(str(error))
        except Exception as error:  # a later step may succeed; the error's text is not logged, it may hold a secret
            return self._back_off(type(error).__name__)
        if self._failures:
            self._log("Reports of pods are well again")
        self._failures = 0
        # A watch lasts a second, and not as long where it becomes quiet. A server that ends it at once is not asked
        # more often, nor is one whose pods change all the time.
        waits = self._quiet and self._first_at > 0
        return 0.0 if waits else max(0.0, began + WATCH_SECONDS - self._monotonic())

    def _follow(self) -> None:
        before = self._pods.news
        # Where news wait for what may come behind them, a silence is waited for, not for the end of a watch.
        self._pods.follow(QUIET_SECONDS if self._first_at else None)
        now = self._monotonic()
        if self._pods.news != before:
            self._last_at, self._first_at = now, self._first_at or now
        self._quiet = self._kube.quiet
        if self._pods.complete and not self._first_at and self._pods.moves == self._told:
            self._followed_at = self._now()
            self._tell()

    def _follow_nodes(self) -> None:
        if self._monotonic() - self._nodes_at >= NODES_SECONDS or not self._nodes.complete:
            moment, interruptions = self._now(), self._nodes.interruptions
            self._nodes.follow()
            self._nodes_at, self._nodes_known_at = self._monotonic(), moment
            if self._nodes.interruptions != interruptions:
                # Its machine has told Stockyard, which has the drain of the node ready.
                self._waiting()

    def _look(self) -> None:
        """Look from time to time whether budgets are as they were told: of them no watch says it."""
        if self._sent is None:
            return
        # Where pods wait it is looked sooner: a driver that has just come to a node may take few volumes.
        soon = 0.0 if self._sent.pending else self._pace / 2
        if self._monotonic() - self._listed_at < max(READ_SECONDS, soon):
            return
        self._list()
        # What pods changed is told with the pods.
        unchanged = self._listed == self._listed_sent
        self._facts_differ = not unchanged and self._facts() != (self._sent.nodes, self._sent.budgets)
        if not self._facts_differ:
            self._checked_at = self._read_at
            self._tell()

    def _list(self) -> None:
        """Read budgets, and how many volumes nodes take. Where budgets are forbidden, no node is told of."""
        self._read_at = min(self._now(), self._nodes_known_at)
        budgets = self._permits.read("Nodes and budgets", lambda: listed_budgets(self._kube))
        limits = self._permits.read("Limits of volumes", lambda: volume_limits(self._kube)) or {}
        self._listed = None if budgets is None else Listed(self._nodes.facts, budgets, limits)
        self._listed_at = self._monotonic()

    def _facts(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        if self._listed is None:
            return None, None
        facts = facts_of(self._pods, self._pods.events, self._listed, self._sources.attached)
        if facts is None:
            return None, None
        nodes, budgets = facts
        return nodes if self._label_keys is None else shortened(nodes, self._label_keys), budgets

    def _tell(self) -> None:
        """Say until when the last report is known to be true."""
        if self._sent is not None and self._followed_at is not None and self._checked_at is not None:
            true_at = min(self._followed_at, self._checked_at)
            self._state = {"sequence": self._base, "true_at": timestamp(true_at)}

    @property
    def _pace(self) -> float:
        """Seconds within which a move of pods is reported while none waits."""
        return min(self._interval, self._asked)

    def _is_due(self) -> bool:
        if not (self._pods.complete and self._nodes.complete):
            return False
        now, since = self._monotonic(), self._monotonic() - self._posted_at
        changed = self._pods.moves != self._told or self._facts_differ
        if self._sent is None or since >= (self._pace if changed else REFRESH_SECONDS):
            return True
        if self._nodes.unready_events != self._unready_told or (
            self._nodes.news != self._nodes_told and since >= NODES_SECONDS
        ):
            return True
        if self._first_at:
            over = now - self._last_at >= IDLE_SECONDS or now - self._first_at >= LONGEST_SECONDS
            return over or (self._quiet and since >= SHORTEST)
        moved = bool(self._sent.pending) and (changed or self._pods.refusals != self._refusals_told)
        return (moved or self._unplaced) and since >= MOVES_SECONDS

    def _post(self) -> None:
        moves, refusals, followed_at = self._pods.moves, self._pods.refusals, self._now()
        news, unready_events = self._nodes.news, self._nodes.unready_events
        pod_state = self._pod_state()
        for _ in range(2):
            answer = self._stockyard.report_pods(self._encoded(pod_state))
            self._base = answer.sequence
            if not answer.resync:
                if pod_state.has_news_for_waiting(self._sent or PodState()):
                    self._waiting()
                self._sent, self._told, self._refusals_told = pod_state, moves, refusals
                self._nodes_told, self._unready_told = news, unready_events
                self._posted_at = self._monotonic()
                self._first_at = self._last_at = 0.0
                self._facts_differ, self._listed_sent = False, self._listed
                self._followed_at, self._checked_at = followed_at, self._read_at
                self._tell()
                self._interval = min(max(answer.interval, SHORTEST), LONGEST) * (0.9 + 0.2 * self._jitter())
                return
            self._sent = None
        raise Unreachable("Stockyard asks for all pods again and again")

    def _pod_state(self) -> PodState:
        pods = list(self._pods)
        self._sources.refresh(pods)
        if self._monotonic() - self._listed_at >= READ_SECONDS:
            self._list()
        elif self._listed is not None:
            self._listed = replace(self._listed, nodes=self._nodes.facts)
        sources = self._sources
        pods, nodes = sources.nominated(pods), self._nodes.facts
        self._unplaced = any(pod.waits and sources.places(pod.namespace, pod.claims) is None for pod in pods)
        pod_state = pod_state_of(pods, sources.daemons, sources.places, nodes, sources.attached, sources.namespaces)
        if self._label_keys is not None:
            self._label_keys = _node_keys(pod_state)
        pod_state.nodes, pod_state.budgets = self._facts()
        return pod_state

    def _encoded(self, pod_state: PodState) -> bytes:
        """The body of a report: what changed, or all of it. Raises ``TooLarge``."""
        moment = self._now()
        # The clock lets a newly started agent continue above the numbers of the agent before it.
        self._sequence = max(self._sequence + 1, self._base + 1, int(moment.timestamp() * 1000))
        observed_at = timestamp(min(moment, self._read_at))
        head = {"sequence": self._sequence, "observed_at": observed_at, "agent_version": VERSION}
        reduced: Callable[[dict[str, Any]], dict[str, Any]] = without_news if self._plain_until else dict
        if self._sent is not None:
            data = _text(reduced({**head, "base": self._base, **pod_state.changes(self._sent)}))
            if len(data) <= LIMIT:
                return data
        data = _text(reduced({**head, "base": None, **pod_state.whole()}))
        if len(data) > LIMIT and pod_state.nodes is not None and self._label_keys is None:
            self._log(f"Labels of nodes that no rule names are left out: a report has {len(data)} bytes, over {LIMIT}")
            self._label_keys = _node_keys(pod_state)
            pod_state.nodes = shortened(pod_state.nodes, self._label_keys)
            data = _text(reduced({**head, "base": None, **pod_state.whole()}))
        if len(data) > LIMIT and pod_state.nodes is not None:
            # Pods that wait come first; without the facts no node is disrupted.
            self._log(f"Nodes and budgets are not told: with them a report has {len(data)} bytes, over {LIMIT}")
            pod_state.nodes = pod_state.budgets = None
            data = _text(reduced({**head, "base": None, **pod_state.whole()}))
        if len(data) > LIMIT or len(pod_state.groups) > MOST_GROUPS:
            many = f"{len(pod_state.groups)} different pods make {len(data)} bytes"
            raise TooLarge(f"{many}; at most {MOST_GROUPS} and {LIMIT} can be told")
        return data

    def _back_off(self, text: str, at_least: float = 0.0) -> float:
        self._failures += 1
        self._log(f"Reports of pods wait: {text} (failure {self._failures})")
        longest = min(BACK_OFF * 2.0 ** min(self._failures - 1, 16), BACK_OFF_MOST)
        return max(longest * (0.5 + 0.5 * self._jitter()), min(at_least, LONGEST))


def _node_keys(pod_state: PodState) -> frozenset[str]:
    return frozenset[str]().union(*map(node_keys, pod_state.groups.values()))


def _text(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
