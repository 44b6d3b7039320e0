"""Plans: what a change would make and remove, and what it costs."""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from stockyard_client.cli.context import Context
from stockyard_client.cli.output import Form, write_document
from stockyard_client.models import Plan, Price

_PARTS = (("creates", "+", "green"), ("changes", "~", "yellow"), ("deletes", "-", "red"), ("rejected", "!", "red"))


def show(context: Context, form: Form, plan: Plan) -> None:
    """Writes ``plan`` to stdout: as the API's document, or for people."""
    if form in {Form.JSON, Form.YAML}:
        write_document(form, plan.document())
        return
    empty = True
    for name, sign, style in _PARTS:
        for line in getattr(plan, name):
            empty = False
            context.out.print(Text(f"{sign} {_described(line)}", style=style), soft_wrap=True)
    if empty:
        context.out.print("Nothing would change.")
    for number, step in enumerate(plan.steps, 1):
        context.out.print(Text(f"{number}. {step}"), soft_wrap=True)
    if plan.price is not None and plan.price.items:
        _show_price(context, plan.price)
        if plan.price_before is not None:
            (hour, month), currency = _total(plan.price_before), plan.price_before.currency
            text = f"Now: {money(hour, currency, 4)} /hour, {money(month, currency, 2)} /month"
            context.out.print(Text(text, style="bold"))
    for warning in plan.warnings:
        context.say(f"Warning: {_described(warning)}", "yellow")
    context.say("This was a dry run; nothing was changed.", "dim")


def money(amount: float | None, currency: str, digits: int) -> str:
    """An amount, or ``unknown``."""
    return "unknown" if amount is None else f"{amount:,.{digits}f} {currency}"


def _total(price: Price) -> tuple[float | None, float | None]:
    """What all lines cost together, an hour and a month; None where no line has a known price."""
    is_known = price.complete or any(item.get("hour") is not None for item in price.items)
    return (price.hour, price.month) if is_known else (None, None)


def _show_price(context: Context, price: Price) -> None:
    rows = [(_item_name(item), item.get("hour"), item.get("month")) for item in price.items]
    rows.append(("total", *_total(price)))
    width = max(len(name) for name, _, _ in rows)
    context.out.print()
    for name, hour, month in rows:
        line = (
            f"{name:<{width}}  {money(hour, price.currency, 4):>14} /hour  {money(month, price.currency, 2):>14} /month"
        )
        context.out.print(Text(line, style="bold" if name == "total" else ""), soft_wrap=True)
    if not price.complete and _total(price) != (None, None):
        context.say("Some prices are not known; the total is without them.", "yellow")


def _item_name(item: dict[str, Any]) -> str:
    quantity = item.get("quantity", 1)
    return f"{item.get('name', '?')} x{quantity}" if quantity != 1 else str(item.get("name", "?"))


def _described(line: Any) -> str:
    if not isinstance(line, dict):
        return str(line)
    if "detail" in line:
        return f"{line['pointer']}: {line['detail']}" if line.get("pointer") else str(line["detail"])
    if "before" in line and "after" in line:
        return f"{line.get('pointer', '')}: {_value(line['before'])} becomes {_value(line['after'])}"
    if "kind" in line:
        return f"{line['kind']}  {line.get('name', '')}".rstrip()
    return ", ".join(f"{key}: {value}" for key, value in line.items())


def _value(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)
