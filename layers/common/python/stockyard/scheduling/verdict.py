"""Summaries of explanations: node types in groups by the rule that excluded them, and one sentence of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.node_types import LEAST_GIB
from stockyard.domain.pools.bids import ABOVE_BID
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.spelling import closest
from stockyard.scheduling.explain import (
    EXTENDED,
    FULL,
    IMAGE,
    MIN_VALUES,
    NOT_ALLOWED,
    NOT_ASKED,
    OFFERING,
    OUT_OF_REACH,
    PROVIDER,
    REFUSED,
    REQUIREMENT,
    RESOURCE,
    RULES,
    SMALL,
    UNAVAILABLE,
    UNSERVED,
    Evaluation,
)
from stockyard.scheduling.match import SchedulingRequest
from stockyard.scheduling.table import NAME_KEYS

FITS = "Fits"
"""What stands in place of a rule for node types that fit."""
MOST_TYPES = 10
"""Names that a group lists."""
_WORDS: Mapping[str, str] = {
    PROVIDER: "of another provider",
    OUT_OF_REACH: "that cannot be in the cluster's network and a zone as asked",
    NOT_ALLOWED: "not among the allowed node types",
    UNAVAILABLE: "not available",
    REQUIREMENT: "without a value of {} as asked",
    EXTENDED: "kept for claims that ask for {}",
    RESOURCE: "without enough {}",
    SMALL: f"with less than {LEAST_GIB} GiB of memory, which a claim has to ask for",
    UNSERVED: "of which no node can be made yet",
    IMAGE: "of an architecture for which there is no image",
    OFFERING: "not offered with this capacity type in this zone",
    NOT_ASKED: "that only come when they are asked for by {}",
    FULL: "with all nodes taken",
    REFUSED: "refused by the provider a short while ago",
    ABOVE_BID: "at a spot price above the bid ({})",
    MIN_VALUES: "left, but with fewer values of {} than minValues",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Node types that one rule excluded for one key or resource, or those that fit and were not chosen.

    ``count`` is of all, ``types`` names the first ones: of those that fit the cheapest. ``message`` is what is said of
    them, behind their number.
    """

    rule: str
    subject: str
    count: int
    message: str
    types: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The group in words: ``3 node types without enough cpu``."""
        return f"{self.count} node type{'s' * (self.count > 1)} {self.message}"


def groups(evaluations: Iterable[Evaluation]) -> list[Group]:
    """The node types that were not chosen: first those that fit, then by order of the rules, most frequent first."""
    members: defaultdict[tuple[str, str], list[Evaluation]] = defaultdict(list)
    listed_evaluations = list(evaluations)
    for evaluation in listed_evaluations:
        if not evaluation.selected:
            members[evaluation.rule or FITS, evaluation.subject].append(evaluation)
    order = (FITS, *RULES)
    ordered = sorted(members.items(), key=lambda pair: (order.index(pair[0][0]), -len(pair[1]), pair[0][1]))
    return [_with_unknown(_group(rule, subject, listed), listed_evaluations) for (rule, subject), listed in ordered]


def _with_unknown(group: Group, evaluations: Sequence[Evaluation]) -> Group:
    """The group with a remark about each label that no node type has, and the label that was probably meant."""
    if group.rule != REQUIREMENT or group.subject in NAME_KEYS:
        return group
    if any(group.subject in each.node_type.properties for each in evaluations):
        return group
    likely = closest(group.subject, sorted({key for each in evaluations for key in each.node_type.properties}))
    hint = f"; did you mean {likely}?" if likely else ""
    return replace(group, message=f"{group.message} (no node type has this label{hint})")


def excluded(evaluations: Iterable[Evaluation]) -> list[Group]:
    """The groups of node types that a rule excluded."""
    return [group for group in groups(evaluations) if group.rule != FITS]


def _group(rule: str, subject: str, members: Sequence[Evaluation]) -> Group:
    count, names = len(members), tuple(each.node_type.name for each in members[:MOST_TYPES])
    fitting = "fits too, and costs no less" if count == 1 else "fit too, and cost no less"
    return Group(rule, subject, count, fitting if rule == FITS else _WORDS[rule].format(subject), names)


def of_interest(evaluations: Iterable[Evaluation], request: SchedulingRequest) -> list[Evaluation]:
    """The evaluations that tell a person something: who names a provider or a type asks for none of the others."""
    listed = list(evaluations)
    of_provider = [each for each in listed if each.rule != PROVIDER]
    if not request.names_type:
        return of_provider
    of_type = [each for each in of_provider if each.rule != REQUIREMENT or each.subject not in NAME_KEYS]
    return of_type or of_provider


def verdict(evaluations: Sequence[Evaluation], *, waits: str) -> str:
    """One sentence: what was chosen and from how many, or why nothing fits and who ``waits``."""
    best = next((each for each in evaluations if each.selected), None)
    if best is not None:
        return _choice(best, sum(each.rule is None for each in evaluations))
    reasons = excluded(evaluations)
    if not reasons:
        return f"There are no node types: {waits}."
    if len(evaluations) == 1:
        only = evaluations[0]
        return f"{only.node_type.name} does not fit now, so {waits}: {only.message}."
    return f"No node type fits now, so {waits}: {'; '.join(f'{group.count} {group.message}' for group in reasons)}."


def refusal(evaluations: Sequence[Evaluation]) -> str:
    """Reason why nothing fits, in one sentence: what was ruled out last, and so fits best, comes first."""
    if len(evaluations) == 1:
        return f"{evaluations[0].node_type.name} does not fit: {evaluations[0].message}."
    return f"No node type fits: {'; '.join(group.sentence for group in reversed(excluded(evaluations)))}."


def _choice(best: Evaluation, fitting: int) -> str:
    price = "at a price that is not known" if best.usd_hour is None else f"at {best.usd_hour:g} USD an hour"
    if best.node_type.owned:
        price = "of your own, " + (f"at {best.usd_hour:g} USD an hour" if best.usd_hour else "which costs nothing more")
        reason = "the only one that fits" if fitting == 1 else f"your own come first of {fitting} that fit"
        return f"{best.node_type.name} ({best.capacity_type}) {price}: {reason}."
    reason = "the only one that fits" if fitting == 1 else f"the cheapest of {fitting} that fit"
    return f"{best.node_type.name} ({best.capacity_type}) {price}: {reason}."
