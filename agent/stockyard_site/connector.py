"""The connector's loop: exchange, carry out, bring the answers at once, pause."""

from __future__ import annotations

from collections.abc import Callable

from ..stockyard_agent.api_calls import StockyardRefused
from ..stockyard_agent.pacing import LONGEST, back_off
from ..stockyard_agent.transport import Unreachable
from .allowed import AllowList, BadList
from .site_api import GivenRequest, SiteAnswer, SiteApi
from .target import Target

MOST_BODIES = 3_000_000
"""Of all answers that are brought at once; at least one is."""
KEPT_SECONDS = 120.0
"""An answer that could not be brought for so long is forgotten: nobody waits for it."""


class Connector:
    """``jitter`` returns numbers from 0 to 1; ``allowed`` the allow-list of now."""

    def __init__(
        self,
        site_api: SiteApi,
        target: Target,
        allowed: Callable[[], AllowList],
        *,
        monotonic: Callable[[], float],
        jitter: Callable[[], float],
        log: Callable[[str], None],
    ) -> None:
        self._site_api, self._target, self._allowed = site_api, target, allowed
        self._monotonic, self._jitter, self._log = monotonic, jitter, log
        self._answers: list[tuple[float, SiteAnswer]] = []
        self._failures = 0

    def run(self, pause: Callable[[float], bool]) -> None:
        """Run rounds until ``pause(seconds)`` returns True."""
        while not pause(self.round()):
            pass

    def round(self) -> float:
        """Run one round. Returns the seconds to wait before the next one: none while there are answers to bring."""
        try:
            interval = self._round()
        except StockyardRefused as refused:
            return self._back_off(str(refused), refused.retry_after)
        except (Unreachable, BadList, OSError, ValueError) as error:
            return self._back_off(str(error))
        except Exception as error:  # a later round may succeed; the error's text may hold a secret
            return self._back_off(f"The round failed: {type(error).__name__}")
        if self._failures:
            self._log("well again")
        self._failures = 0
        return min(max(interval, 0.0), LONGEST) * (1.0 + 0.05 * self._jitter())

    def _round(self) -> float:
        self._answers = [entry for entry in self._answers if self._monotonic() - entry[0] < KEPT_SECONDS]
        batch = self._next_answers()
        requests, interval = self._site_api.exchange(self._allowed().lines, [answer for _, answer in batch])
        self._answers = self._answers[len(batch) :]
        moment = self._monotonic()
        for request in requests:
            self._answers.append((self._monotonic(), self._carried_out(request, moment)))
        return 0.0 if self._answers else interval

    def _next_answers(self) -> list[tuple[float, SiteAnswer]]:
        size, count = 0, 0
        for _, answer in self._answers:
            size += len(answer.body)
            if count and size > MOST_BODIES:
                break
            count += 1
        return self._answers[:count]

    def _carried_out(self, request: GivenRequest, moment: float) -> SiteAnswer:
        if self._monotonic() - moment > request.seconds:
            answer = SiteAnswer(request.id, 0, {}, b"", "it was too late to begin")
        else:
            answer = self._target.carry_out(request)
        path = request.target.partition("?")[0]
        result = f"no answer: {answer.failure}" if answer.failure is not None else str(answer.status)
        self._log(f"{ascii(request.method)[1:-1]} {ascii(path[:200])[1:-1]}: {result}")
        return answer

    def _back_off(self, text: str, at_least: float = 0.0) -> float:
        self._failures += 1
        self._log(f"{text} (failure {self._failures})")
        return back_off(self._failures, self._jitter(), at_least)
