"""Explanation of a claim's node type: the verdict first, then what fits, then what does not, by reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from stockyard_client.base_models import HOURS_A_MONTH, Model
from stockyard_client.cli.context import Context
from stockyard_client.cli.output import sections
from stockyard_client.cli.output.ages import age
from stockyard_client.cli.output.node_tables import amount, dollars
from stockyard_client.cli.output.output import Form, show_many, write_document
from stockyard_client.cli.output.plans import money
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.node_models import Candidate, Explanation

MOST_NAMES = 3
FITS = "Fits"
"""The rule of the group of those that fit and were not chosen."""

CANDIDATES: Printer[Candidate] = Printer(
    (
        Column("TYPE", lambda c: c.type, give=1),
        Column("CAPACITY", lambda c: c.capacity_type),
        Column("USD/HOUR", lambda c: dollars(c.usd_hour, owned=c.owned)),
        Column("RULED OUT BY", lambda c: c.rule, give=2),
        Column("MESSAGE", lambda c: c.message, give=3),
        Column("COST", lambda c: amount(c.cost), wide=True),
    ),
    lambda c: c.type,
)


class Fitting(Model):
    """A type that fits, and by how much it is dearer than the cheapest one."""

    candidate: Candidate
    choice: str = ""
    dearer: float | None = None


class RuledOut(Model):
    """The types that one rule has ruled out."""

    rule: str
    message: str
    types: tuple[str, ...] = ()
    count: int = 0


FITTING: Printer[Fitting] = Printer(
    (
        Column("TYPE", lambda f: f.candidate.type, give=1),
        Column("CAPACITY", lambda f: f.candidate.capacity_type),
        Column("USD/HOUR", lambda f: dollars(f.candidate.usd_hour, owned=f.candidate.owned)),
        Column("DEARER BY", lambda f: None if not f.dearer else f"{f.dearer:.0%}"),
        Column("", lambda f: f.choice or " "),
    ),
    lambda f: f.candidate.type,
)
RULED_OUT: Printer[RuledOut] = Printer(
    (
        Column("TYPES", lambda r: r.count),
        Column("RULED OUT BY", lambda r: r.rule),
        Column("FOR EXAMPLE", lambda r: names_of(r.types, r.count), give=2),
        Column("BECAUSE", lambda r: r.message, give=1),
    ),
    lambda r: r.rule,
)


def show(context: Context, form: Form, explanation: Explanation, limit: int) -> None:
    """Writes the explanation; ``limit`` is how many of the types that fit are shown. ``wide`` has a row per type."""
    if form in {Form.JSON, Form.YAML}:
        write_document(form, explanation.document())
        return
    if form in {Form.WIDE, Form.NAME}:
        if form is Form.WIDE:
            context.out.print(Text(verdict(context, explanation), style="bold"), soft_wrap=True)
        show_many(context, form, CANDIDATES, explanation.candidates)
        return
    context.out.print(Text(verdict(context, explanation), style="bold"), soft_wrap=True)
    if explanation.opt_in:
        context.out.print(Text(explanation.opt_in), soft_wrap=True)
    fitting, (fit_count, groups) = fitting_types(explanation), grouped(explanation)
    fit_count = max(fit_count, len(fitting))
    remaining = fit_count - min(limit, len(fitting))
    more = f"and {remaining} more that fit: -o wide, or --limit" if remaining > 0 else ""
    sections.table(
        context, "1 type fits" if fit_count == 1 else f"{fit_count} types fit", FITTING, fitting[:limit], more
    )
    count = sum(group.count for group in groups)
    name = "1 type is ruled out" if count == 1 else f"{count} types are ruled out"
    sections.table(context, name, RULED_OUT, groups)
    if explanation.node is not None:
        context.out.print()
        context.out.print(Text(node_text(explanation.node)), soft_wrap=True)
    if explanation.network is not None:
        context.out.print(Text(f"Network: {explanation.network}."), soft_wrap=True)


def node_text(node: Mapping[str, Any]) -> str:
    """Describe the claim's node as it is now: who says so, what keeps pods away, and what is free."""
    source = "as its cluster reports it" if node.get("reported") else "as it is expected to be"
    free = ", ".join(f"{amount} {name}" for name, amount in (node.get("free") or {}).items()) or "nothing"
    taints = f" Taints: {', '.join(node['taints'])}." if node.get("taints") else ""
    reason = f" No pod goes there: {node['unschedulable_reason']}." if node.get("unschedulable_reason") else ""
    return f"Node {node.get('name')}, {source}: {free} free.{taints}{reason}"


def verdict(context: Context, explanation: Explanation) -> str:
    """One sentence: where the claim was placed and for how much, or why nowhere."""
    placement = explanation.chosen
    if placement is None:
        return explanation.message or "No node type has been chosen yet."
    hour = placement.get("usd_hour")
    month = None if hour is None else hour * HOURS_A_MONTH
    price = f"{money(hour, 'USD', 4)} /hour, {money(month, 'USD', 2)} /month"
    price = "your own, nothing more to pay" if placement.get("owned") and not hour else price
    offering = f"{placement.get('capacity_type')}, {', '.join(placement.get('zones') or ())}"
    moment = age(explanation.decided_at, context.now())
    when = f" {moment} ago" if moment else ""
    return f"Placed on {placement.get('type')} ({offering}){when}: {price}.{_why_not_the_cheapest(explanation)}"


def _why_not_the_cheapest(explanation: Explanation) -> str:
    """Sentence of why a dearer type was taken than the cheapest that the provider was given; empty where the cheapest
    one was taken."""
    options = explanation.options
    if len(options) < 2 or options[0].get("type") == (explanation.chosen or {}).get("type"):
        return ""
    reasons = explanation.passed_over
    if not reasons:
        return f" Of {len(options)} types that the provider was given it took that one."
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names_by_reason.setdefault(reason, []).append(name)
    texts = [f"{names_of(names, len(names))}: {reason}" for reason, names in names_by_reason.items()]
    return f" Cheaper ones were passed over. {'; '.join(texts)}."


def fitting_types(explanation: Explanation) -> list[Fitting]:
    """The types that fit: the chosen one first, then the others, the cheapest first."""
    chosen_type = (explanation.chosen or {}).get("type")
    fitting = [candidate for candidate in explanation.candidates if candidate.rule is None]
    fitting_own = any(candidate.owned for candidate in fitting)
    known_prices = [] if fitting_own else [c.usd_hour for c in fitting if c.usd_hour is not None]
    least = min(known_prices, default=None)
    ordered = sorted(
        fitting, key=lambda c: (c.type != chosen_type, not c.owned, c.usd_hour is None, c.usd_hour or 0.0, c.type)
    )
    return [
        Fitting(
            candidate=candidate,
            choice="chosen" if candidate.type == chosen_type else "",
            dearer=candidate.usd_hour / least - 1 if least and candidate.usd_hour is not None else None,
        )
        for candidate in ordered
    ]


def grouped(explanation: Explanation) -> tuple[int, list[RuledOut]]:
    """Number of types that fit, and the other types by rule, as the API counts them; an older one lists them."""
    if not explanation.groups:
        # candidates are some of the types, and are counted whole beside them
        rows = [
            row.model_copy(update={"count": max(row.count, explanation.considered.get(row.rule, 0))})
            for row in ruled_out(explanation.candidates)
        ]
        return 0, rows
    fit_count = sum(group.count for group in explanation.groups if group.rule == FITS)
    is_placed = (explanation.chosen or {}).get("type") is not None
    groups = [
        RuledOut(rule=group.rule, message=group.message, types=group.types, count=group.count)
        for group in explanation.groups
        if group.rule != FITS
    ]
    return fit_count + is_placed, groups


def ruled_out(candidates: Iterable[Candidate]) -> list[RuledOut]:
    """The types that do not fit, by rule, the largest group first. The message is that of the first of each group."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.rule is not None:
            groups.setdefault(candidate.rule, []).append(candidate)
    rows = [
        RuledOut(rule=rule, message=listed[0].message, types=tuple(entry.type for entry in listed), count=len(listed))
        for rule, listed in groups.items()
    ]
    return sorted(rows, key=lambda group: (-group.count, group.rule))


def names_of(types: Sequence[str], count: int) -> str:
    """The first names, and how many more there are."""
    more = count - len(types[:MOST_NAMES])
    return ", ".join(types[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
