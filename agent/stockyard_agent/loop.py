"""The agent's loop: observe the cluster, post, carry out commands, pause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from .api_calls import StockyardRefused
from .certificates import Approvals
from .commands.inbox import CommandInbox
from .kubernetes import Kubernetes, Refused
from .observation import TooLarge, encoded, observe
from .pacing import LONGEST, back_off
from .stockyard_api import StockyardApi
from .transport import Unreachable

_SHORTEST = 1.0
SOON_SECONDS = 5.0
"""How long the next round waits at most where something is expected."""
LOOK_SECONDS = 1.0
"""How often the requests of certificates are looked at: a machine that joins waits for its own."""


class ReportsOfPods(Protocol):
    """Calls of the loop to the reports of pods; see ``pod_reports.PodReports``."""

    @property
    def state(self) -> Mapping[str, Any] | None:
        """Progress of the reports; None before the first one."""

    def ask(self, seconds: float | None) -> None:
        """Set the seconds within which moves are reported."""


class ListOfOverlay(Protocol):
    """Calls of the loop to the list of the overlay's machines; see ``overlay.OverlayList``."""

    @property
    def version(self) -> str | None:
        """The version of the list that was written last."""

    def hear(self, content: Mapping[str, Any] | None) -> None:
        """Write the list of an answer, if it has one."""


class Agent:
    """``jitter`` returns numbers from 0 to 1; ``authority`` the PEM text of the cluster's certificate authority.

    ``mirror`` is called after each post with the version of what is to be mirrored and with the nodes of the post;
    ``secrets`` with whether there are Secrets with kubeconfigs to keep.
    """

    def __init__(
        self,
        kube: Kubernetes,
        stockyard_api: StockyardApi,
        inbox: CommandInbox,
        approvals: Approvals,
        *,
        authority: Callable[[], str],
        pin: Callable[[str], str],
        now: Callable[[], datetime],
        jitter: Callable[[], float],
        log: Callable[[str], None],
        mirror: Callable[[str | None, Sequence[Mapping[str, Any]]], None] = lambda _, __: None,
        secrets: Callable[[bool], None] = lambda _: None,
        overlay: ListOfOverlay | None = None,
    ) -> None:
        self._kube, self._stockyard, self._inbox, self._approvals = kube, stockyard_api, inbox, approvals
        self._authority, self._pin, self._now, self._jitter, self._log = authority, pin, now, jitter, log
        self._mirror, self._secrets, self._overlay = mirror, secrets, overlay
        self._pods: ReportsOfPods | None = None
        self._sequence = 0
        self._failures = 0
        self._blind = ""
        self._soon = False
        """Whether the next round is to come soon."""

    def run(self, pause: Callable[[float], bool]) -> None:
        """Run rounds until ``pause(seconds)`` returns True. Requests of certificates are decided between them."""
        while True:
            self.look()
            seconds = self.round()
            while seconds > 0:
                if pause(min(seconds, LOOK_SECONDS)):
                    return
                seconds = min(seconds, SOON_SECONDS if self._soon else seconds) - LOOK_SECONDS
                # What failed is for the next round: an API that is silent is not asked each second.
                if seconds > 0 and not self._blind:
                    self.look()

    def attach(self, pods: ReportsOfPods) -> None:
        """From now on posts say how far the reports of pods are, and answers how soon those are to come."""
        self._pods = pods

    def come_soon(self) -> None:
        """Begin the next round within ``SOON_SECONDS``. Another thread may call it."""
        self._soon = True

    def look(self) -> None:
        """Decide what certificates kubelets get. Whatever goes wrong is tried again soon, and logged when it is new."""
        trouble = ""
        try:
            self._approvals.look()
        except (Refused, Unreachable, OSError) as error:
            trouble = str(error)
        except Exception as error:  # an object of an unexpected shape must not end the agent
            trouble = type(error).__name__
        if trouble and trouble != self._blind:
            self._log(f"Requests of certificates wait: {trouble}")
        self._blind = trouble

    def round(self) -> float:
        """Run one round. Returns the seconds to wait before the next one."""
        try:
            interval = self._round()
        except StockyardRefused as refused:
            return self._back_off(str(refused), refused.retry_after)
        except Refused as refused:
            return self._back_off(f"The Kubernetes API refused an observation: {refused}")
        except (Unreachable, TooLarge, OSError, ValueError) as error:
            return self._back_off(str(error))
        except Exception as error:  # a later round may succeed; the error's text is not logged, it may hold a secret
            return self._back_off(f"The round failed: {type(error).__name__}")
        if self._failures:
            self._log("well again")
        self._failures = 0
        return min(max(interval, _SHORTEST), LONGEST) * (0.9 + 0.2 * self._jitter())

    def _round(self) -> float:
        self._soon = False
        pin = self._pin(self._authority())
        observed = observe(self._kube)
        moment = self._now()
        # The clock lets a newly started agent continue above the numbers of the agent before it.
        self._sequence = max(self._sequence + 1, int(moment.timestamp() * 1000))
        pods = self._pods.state if self._pods else None
        overlay = self._overlay.version if self._overlay else None
        body = encoded(
            observed, self._inbox.results, sequence=self._sequence, moment=moment, pin=pin, pods=pods, overlay=overlay
        )
        answer = self._stockyard.post(body)
        if self._pods:
            self._pods.ask(answer.pods_interval)
        self._mirror(answer.mirror, observed["nodes"])
        self._secrets(answer.kubeconfig_secrets)
        if self._overlay:
            self._overlay.hear(answer.overlay)
        self._inbox.take(answer.commands)
        return answer.interval

    def _back_off(self, text: str, at_least: float = 0.0) -> float:
        self._failures += 1
        self._log(f"{text} (failure {self._failures})")
        return back_off(self._failures, self._jitter(), at_least)
