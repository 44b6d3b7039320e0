"""Templates of node providers that stand in a source that moves, such as a branch: each is looked at in its interval,
and the provider says what it is at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from stockyard.domain.platform import is_shared
from stockyard.domain.records import Fact, NodeProvider
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import Truth
from stockyard.errors import Conflict, VendorError
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Put, Replace
from stockyard.ports.node_work import TemplateSource
from stockyard.ports.nodes import FollowsTemplates

CONDITION = "TemplatesFetched"
FETCHED, FAILED, NOT_FOLLOWED = "Fetched", "FetchFailed", "NotFollowed"
MOST = 10
"""Templates that one pass looks at, each for at most 20 seconds of the four minutes that it has; others are next."""
EARLY_SECONDS = 30
"""How much earlier a template may be looked at: passes do not come to the second."""
MOST_WORDS = 1000
"""Characters of the condition."""
FORGOTTEN = timedelta(days=1)
"""After so long without an answer it counts as unknown what a template is at."""


@dataclass(frozen=True, slots=True)
class Look:
    """Last look at a template: when, and since when and why nothing was seen; None for both while something is."""

    at: str
    failed_since: str | None = None
    fault: str | None = None


def any_followed(services: Services, providers: Iterable[NodeProvider]) -> bool:
    """Whether one of the providers, which is the tenant's own, has or had such a template."""
    return any(not is_shared(provider) and _follower(services, provider) for provider in providers)


def follow_all(services: Services) -> list[NodeProvider]:
    """Look at all templates of the tenant's own providers that are due, ``MOST`` at once. The providers of which a
    template has moved."""
    remaining = MOST
    moved: list[NodeProvider] = []
    for provider in every(services.store, NodeProvider):
        source = _follower(services, provider)
        if source is not None:
            looked, has_moved = _follow(services, provider, source, remaining)
            remaining -= looked
            moved += [provider] if has_moved else []
    return moved


def fact_id(provider: NodeProvider) -> str:
    """Name of the fact of the last looks at a provider's templates."""
    return f"{provider.id}/templates"


def _follower(services: Services, provider: NodeProvider) -> FollowsTemplates | None:
    """The source that follows templates of the provider; None where there are and were none to follow."""
    source = services.node_sources.get(provider.kind)
    if source is None:
        return None
    says_so = any(condition.type == CONDITION for condition in provider.conditions)
    return source if says_so or provider.template_revisions or source.template_sources(provider) else None


def _follow(services: Services, provider: NodeProvider, source: FollowsTemplates, most: int) -> tuple[int, bool]:
    """Look at the provider's templates that are due. Number of looks, and whether a template has moved."""
    templates = source.template_sources(provider)
    fact = services.store.get(Fact, fact_id(provider))
    looks = {key: Look(**look) for key, look in json.loads(fact.value).items()} if fact is not None else {}
    revisions, now = dict(provider.template_revisions), services.clock.now()
    due = [
        template
        for template in templates
        if template.blocker is None and _is_due(looks.get(template.key), template, now)
    ][:most]
    for template in due:
        try:
            revisions[template.key], looks[template.key] = source.newest(template), Look(services.now())
        except VendorError as error:
            look = looks[template.key] = _failure(looks.get(template.key), services.now(), error)
            if now - times.from_text(str(look.failed_since)) >= FORGOTTEN:
                revisions.pop(template.key, None)
    keys = {template.key for template in templates}
    revisions = {key: revision for key, revision in revisions.items() if key in keys}
    if due:
        value = json.dumps({key: asdict(look) for key, look in looks.items() if key in keys})
        services.store.commit(Put(Fact(fact_id(provider), value, services.now())))
    _say(services, provider, revisions, _condition(templates, revisions, looks, services.now()))
    before = provider.template_revisions
    return len(due), any(key in before and revision != before[key] for key, revision in revisions.items())


def _is_due(look: Look | None, template: TemplateSource, now: datetime) -> bool:
    if look is None:
        return True
    return (now - times.from_text(look.at)).total_seconds() >= template.interval_seconds - EARLY_SECONDS


def _failure(before: Look | None, now: str, error: VendorError) -> Look:
    return Look(now, (before.failed_since if before is not None else None) or now, error.detail)


def _condition(
    templates: Sequence[TemplateSource], revisions: Mapping[str, str], looks: Mapping[str, Look], now: str
) -> Condition | None:
    """Condition of a provider with these templates; None where there are none."""
    status: Truth = "True"
    reason, lines = FETCHED, list[str]()
    for template in templates:
        look = looks.get(template.key)
        if template.blocker is not None:
            status, reason = ("Unknown", NOT_FOLLOWED) if status == "True" else (status, reason)
            lines.append(f"{template.name} is not followed: {template.blocker}")
        elif look is not None and look.fault is not None:
            status, reason = "False", FAILED
            lines.append(f"{template.name} could not be read since {look.failed_since}: {look.fault}")
        elif template.key in revisions:
            lines.append(f"{template.name} is at {revisions[template.key]}.")
    return Condition(CONDITION, status, reason, " ".join(lines)[:MOST_WORDS], now) if templates else None


def _say(services: Services, provider: NodeProvider, revisions: dict[str, str], condition: Condition | None) -> None:
    """Write what the provider's templates are at, unless the provider says so already. Who has changed it meanwhile was
    first: the next pass says it."""
    conditions = tuple(each for each in provider.conditions if each.type != CONDITION)
    if condition is not None:
        conditions = with_condition(provider.conditions, condition)
    if (conditions, revisions) == (provider.conditions, provider.template_revisions):
        return
    changed = replace(provider, template_revisions=revisions, conditions=conditions, version=provider.version + 1)
    with suppress(Conflict):
        services.store.commit(Replace(changed))
