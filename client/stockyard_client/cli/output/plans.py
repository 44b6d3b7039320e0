"""Plans: the verdict first, then what a change would make and remove, by kind, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text

from stockyard_client.cli.context import Context
from stockyard_client.cli.output import field_lines
from stockyard_client.cli.output.output import Form, write_document
from stockyard_client.models import Plan, Price

_PARTS = (("creates", "+", "green"), ("changes", "~", "yellow"), ("deletes", "-", "red"))
MOST_GROUPS = 8
MOST_LOCATIONS = 3
"""Fields that one sentence is said of one by one."""


def show(context: Context, form: Form, plan: Plan, *, is_dry_run: bool = True) -> None:
    """Writes ``plan`` to stdout: as the API's document, or for people. Else than a dry run, it is carried out next."""
    if form in {Form.JSON, Form.YAML}:
        write_document(form, plan.document())
        return
    sentence = verdict(plan)
    if sentence:
        context.out.print(Text(sentence, style="bold"), soft_wrap=True)
    for name, sign, style in _PARTS:
        entries = getattr(plan, name)
        if name == "changes":
            field_lines.draw(context, [entry for entry in entries if field_lines.is_change(entry)])
        for line in _lines([entry for entry in entries if not field_lines.is_change(entry)]):
            context.out.print(Text(f"{sign} {line}", style=style), soft_wrap=True)
    _show_groups(context, plan)
    for number, step in enumerate(plan.steps, 1):
        context.out.print(Text(f"{number}. {step}"), soft_wrap=True)
    if plan.price is not None and plan.price.items:
        _show_price(context, plan.price)
        if plan.price_before is not None:
            hour, month = _total(plan.price_before)
            text = f"Now: {hour} /hour, {month} /month"
            context.out.print(Text(text, style="bold"))
    sentences = {sentence, *(line.partition(": ")[2] for line in sentence.splitlines())}
    warn(context, [line for line in plan.warnings if not isinstance(line, dict) or line.get("detail") not in sentences])
    if is_dry_run:
        context.say("This was a dry run; nothing was changed.", "dim")


def verdict(plan: Plan) -> str:
    """One sentence: what would happen, and for how much; empty where one line says it all."""
    own = plan.document().get("verdict")
    if own:
        return str(own)
    counts = (("make", len(plan.creates)), ("change", len(plan.changes)), ("remove", len(plan.deletes)))
    done = [f"{word} {count} thing{'s' if count > 1 else ''}" for word, count in counts if count]
    if not done:
        return "" if plan.rejected else "Nothing would change."
    clause = _money_clause(plan)
    if sum(count for _, count in counts) == 1 and not clause:
        return ""
    return f"Would {' and '.join(done)}{clause}."


def _money_clause(plan: Plan) -> str:
    if plan.price is None or not plan.price.items:
        return ""
    if not _is_known(plan.price):
        return ", at a price that is not known"
    month = _total(plan.price)[1]
    amount_text = amount(plan.price)
    if plan.price_before is not None:
        before = _total(plan.price_before)[1]
        if before == month and plan.price.complete:
            return f", at the same price of {amount_text}"
        return f", for {amount_text} in place of {before}/month"
    only_removes = bool(plan.deletes) and not plan.creates and not plan.changes
    return f", which {'saves' if only_removes else 'costs'} {amount_text}"


def amount(price: Price) -> str:
    """Price of all lines an hour and a month; of a price that is not known in full, at least."""
    hour, month = _total(price)
    return f"{hour}/hour, {month}/month"


def money(amount: float | None, currency: str, digits: int) -> str:
    """An amount, or ``unknown``."""
    return "unknown" if amount is None else f"{amount:,.{digits}f} {currency}"


def _lines(entries: Sequence[Any]) -> list[str]:
    """Things of a kind on one line, the kinds in a column; anything else on a line of its own."""
    by_kind: dict[str, list[str]] = {}
    texts: list[str] = []
    for entry in entries:
        if isinstance(entry, dict) and set(entry) <= {"kind", "name"} and "kind" in entry:
            kind = str(entry["kind"]).replace("_", " ").replace("-", " ")
            by_kind.setdefault(kind, []).append(str(entry.get("name") or ""))
        else:
            texts.append(_described(entry))
    kinds = {kind: f"{kind} x{len(names)}" if len(names) > 1 else kind for kind, names in by_kind.items()}
    by_kind = {kind: _counted(names) for kind, names in by_kind.items()}
    width = max((len(kind) for kind in kinds.values()), default=0)
    rows = [f"{kinds[kind]:<{width}}  {', '.join(names)}".rstrip() for kind, names in by_kind.items()]
    return [*rows, *texts]


def _counted(names: Sequence[str]) -> list[str]:
    """Each name once, with how often it is there."""
    return [f"{name} x{count}" if count > 1 and len(set(names)) > 1 else name for name, count in Counter(names).items()]


def _show_groups(context: Context, plan: Plan) -> None:
    """Show what is ruled out: by reason, where the API says it so, else line by line."""
    groups = plan.document().get("groups") or ()
    if not groups:
        for line in plan.rejected:
            context.out.print(Text(f"! {remark(context, line)}", style="red"), soft_wrap=True)
        return
    for group in groups[:MOST_GROUPS]:
        names = [str(name) for name in group.get("types") or ()]
        remaining = int(group.get("count") or 0) - len(names[:3])
        more = f" and {remaining} more" if remaining > 0 else ""
        text = f"! {group.get('count')} {group.get('message') or group.get('rule')}: {', '.join(names[:3])}{more}"
        context.out.print(Text(text, style="red"), soft_wrap=True)
    if len(groups) > MOST_GROUPS:
        context.out.print(Text(f"! and for {len(groups) - MOST_GROUPS} more reasons: -o json", style="red"))


def _is_known(price: Price) -> bool:
    """Whether any line has a known price."""
    return price.complete or any(item.get("hour") is not None for item in price.items)


def _total(price: Price) -> tuple[str, str]:
    """Price of all lines together, an hour and a month, in words: at least what is known of it."""
    if price.complete:
        return money(price.hour, price.currency, 4), money(price.month, price.currency, 2)
    if not _is_known(price):
        return "unknown", "unknown"
    amounts = money(price.known_hour, price.currency, 4), money(price.known_month, price.currency, 2)
    return f"at least {amounts[0]}", f"at least {amounts[1]}"


def _show_price(context: Context, price: Price) -> None:
    rows = [
        (_item_name(item), money(item.get("hour"), price.currency, 4), money(item.get("month"), price.currency, 2))
        for item in _summed(price.items)
    ]
    rows.append(("total", *_total(price)))
    width = max(len(name) for name, _, _ in rows)
    context.out.print()
    for name, hour, month in rows:
        line = f"{name:<{width}}  {hour:>14} /hour  {month:>14} /month"
        context.out.print(Text(line, style="bold" if name == "total" else ""), soft_wrap=True)
    if not price.complete and _is_known(price):
        context.say("Some prices are not known: the total is more than that.", "yellow")


def _summed(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of the same name as one."""
    sums: dict[str, dict[str, Any]] = {}
    for item in items:
        name = str(item.get("name", "?"))
        line = sums.get(name)
        if line is None:
            sums[name] = dict(item)
            continue
        line["quantity"] = line.get("quantity", 1) + item.get("quantity", 1)
        for unit in ("hour", "month"):
            known_price = line.get(unit) is not None and item.get(unit) is not None
            line[unit] = line[unit] + item[unit] if known_price else None
    return list(sums.values())


def _item_name(item: dict[str, Any]) -> str:
    quantity = item.get("quantity", 1)
    return f"{item.get('name', '?')} x{quantity}" if quantity != 1 else str(item.get("name", "?"))


def warn(context: Context, warnings: Iterable[Any]) -> None:
    """Writes what to mind of a plan, or of what was made or changed, to stderr: warnings first, then what only tells.
    What is said of many fields is said once."""
    listed = list(warnings)
    notes = [line for line in listed if isinstance(line, dict) and line.get("note")]
    for line in _said_once(context, [line for line in listed if line not in notes]):
        context.say(f"Warning: {line}", "yellow")
    for line in _said_once(context, notes):
        context.say(f"Note: {line}", "dim")


def _said_once(context: Context, lines: Sequence[Any]) -> list[str]:
    """The remarks as sentences; equal ones of more than ``MOST_LOCATIONS`` fields as one, with the first."""
    by_text: dict[str, list[str]] = {}
    for line in lines:
        is_remark = isinstance(line, dict) and "detail" in line
        text = str(line["detail"]) if is_remark else _described(line)
        location = context.location_of(str(line.get("pointer") or "")) if is_remark else ""
        by_text.setdefault(text, []).append(location)
    sentences: list[str] = []
    for text, named in by_text.items():
        if len(named) > MOST_LOCATIONS:
            sentences.append(f"{named[0]} and {len(named) - 1} other places: {text}")
        else:
            sentences += [f"{location}: {text}" if location else text for location in named]
    return sentences


def remark(context: Context, line: Any) -> str:
    """A warning, or why something is ruled out, with its location as a person calls it."""
    if not isinstance(line, dict) or "detail" not in line:
        return _described(line)
    location = context.location_of(str(line.get("pointer") or ""))
    return f"{location}: {line['detail']}" if location else str(line["detail"])


def _described(line: Any) -> str:
    if not isinstance(line, dict):
        return str(line)
    if "kind" in line:
        return f"{line['kind']}  {line.get('name', '')}".rstrip()
    return ", ".join(f"{key}: {value}" for key, value in line.items())
