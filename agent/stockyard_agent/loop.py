"""The loop: observe, post, carry out, pause. It ends only when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from .desk import Desk
from .kubernetes import Kubernetes, Refused
from .observation import TooLarge, encoded, observe
from .transport import Unreachable
from .uplink import Uplink, UplinkRefused

_SHORTEST, _LONGEST = 1.0, 3600.0
BACK_OFF, BACK_OFF_MOST = 2.0, 300.0
"""Seconds after the first round that failed, and at most."""


class Agent:
    """``jitter`` gives numbers from 0 to 1; ``authority`` the PEM text of the cluster's certificate authority."""

    def __init__(
        self,
        kube: Kubernetes,
        uplink: Uplink,
        desk: Desk,
        *,
        authority: Callable[[], str],
        pin: Callable[[str], str],
        now: Callable[[], datetime],
        jitter: Callable[[], float],
        log: Callable[[str], None],
    ) -> None:
        self._kube, self._uplink, self._desk = kube, uplink, desk
        self._authority, self._pin, self._now, self._jitter, self._log = authority, pin, now, jitter, log
        self._sequence = 0
        self._failures = 0

    def run(self, pause: Callable[[float], bool]) -> None:
        """Rounds until ``pause(seconds)`` says that it is over."""
        while not pause(self.round()):
            pass

    def round(self) -> float:
        """One round; the seconds to wait before the next one."""
        try:
            interval = self._round()
        except UplinkRefused as refused:
            return self._back_off(str(refused), refused.retry_after)
        except Refused as refused:
            return self._back_off(f"The Kubernetes API refused an observation: {refused}")
        except (Unreachable, TooLarge, OSError, ValueError) as error:
            return self._back_off(str(error))
        except Exception as error:  # the next round may see another world; its text could hold anything
            return self._back_off(f"The round failed: {type(error).__name__}")
        if self._failures:
            self._log("well again")
        self._failures = 0
        return min(max(interval, _SHORTEST), _LONGEST) * (0.9 + 0.2 * self._jitter())

    def _round(self) -> float:
        pin = self._pin(self._authority())
        observed = observe(self._kube)
        moment = self._now()
        # Also an agent that was just started, and knows nothing of its predecessor, numbers on.
        self._sequence = max(self._sequence + 1, int(moment.timestamp() * 1000))
        body = encoded(observed, self._desk.results, sequence=self._sequence, moment=moment, pin=pin)
        answer = self._uplink.post(body)
        self._desk.take(answer.commands)
        return answer.interval

    def _back_off(self, text: str, at_least: float = 0.0) -> float:
        self._failures += 1
        self._log(f"{text} (failure {self._failures})")
        longest = min(BACK_OFF * 2.0 ** min(self._failures - 1, 16), BACK_OFF_MOST)
        return max(longest * (0.5 + 0.5 * self._jitter()), min(at_least, _LONGEST))
