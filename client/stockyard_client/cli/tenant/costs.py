"""``stockyard cost``: what is paid now, and has been paid this month."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from stockyard_client.base_models import HOURS_A_MONTH, Model
from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.output.output import Form, Output, show_many, write_document
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.cli.tenant.budgets import scope_text
from stockyard_client.resources.costs import CLUSTER, NODES, Budget, CostLine, Costs


class By(StrEnum):
    """Meaning of a row of the table."""

    CLUSTER = "cluster"
    POOL = "pool"
    TYPE = "type"


class CostRow(Model):
    """Lines that are shown as one. ``nodes`` counts those that stand; None in money: a price is not known."""

    name: tuple[str, ...]
    nodes: int = 0
    hour: float | None = 0.0
    spent: float | None = 0.0


def money(amount: float | None, digits: int) -> str:
    """USD, or ``unknown``."""
    return "unknown" if amount is None else f"{amount:,.{digits}f}"


def _location(line: CostLine) -> str:
    return line.cluster or line.cluster_id or "(no cluster)"


def _pool(line: CostLine) -> str:
    return "(control plane and network)" if line.kind == CLUSTER else line.pool or "(no pool)"


_KEYS: dict[By, tuple[tuple[str, ...], Callable[[CostLine], tuple[str, ...]]]] = {
    By.CLUSTER: (("CLUSTER",), lambda line: (_location(line),)),
    By.POOL: (("CLUSTER", "POOL"), lambda line: (_location(line), _pool(line))),
    By.TYPE: (("TYPE", "CAPACITY"), lambda line: (line.type, line.capacity_type or "")),
}


def rows(lines: Iterable[CostLine], by: By) -> list[CostRow]:
    """The lines summed up, the dearest first."""
    sums: dict[tuple[str, ...], CostRow] = {}
    for line in lines:
        key = _KEYS[by][1](line)
        row = sums.get(key) or CostRow(name=key)
        sums[key] = CostRow(
            name=key,
            nodes=row.nodes + (line.quantity if line.kind == NODES else 0),
            hour=_sum(row.hour, line.hour),
            spent=_sum(row.spent, line.spent),
        )
    return sorted(sums.values(), key=lambda row: (-(row.hour or 0.0), -(row.spent or 0.0), row.name))


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _part(index: int, row: CostRow) -> str:
    return row.name[index]


def _printer(by: By) -> Printer[CostRow]:
    headings = _KEYS[by][0]
    names = [Column(heading, partial(_part, index), give=index + 1) for index, heading in enumerate(headings)]
    return Printer(
        (
            *names,
            Column("NODES", lambda row: row.nodes or None),
            Column("USD/HOUR", lambda row: money(row.hour, 4)),
            Column("USD/MONTH", lambda row: money(None if row.hour is None else row.hour * HOURS_A_MONTH, 2)),
            Column("THIS MONTH", lambda row: money(row.spent, 2)),
        ),
        lambda row: "/".join(row.name),
    )


def total(costs: Costs) -> str:
    """One line: what all costs now, and has cost this month."""
    if costs.complete:
        text = f"{money(costs.hour, 4)} USD/hour, {money(costs.month_rate, 2)} USD/month; {costs.month} so far"
        ends = f", {money(costs.forecast, 2)} USD by its end" if costs.forecast is not None else ""
        return f"{text} {money(costs.spent, 2)} USD{ends}"
    rate = f"at least {money(costs.known_hour, 4)} USD/hour, {money(costs.known_month_rate, 2)} USD/month"
    return f"{rate}; {costs.month} so far at least {money(costs.known_spent, 2)} USD"


def budget_text(budget: Budget) -> str:
    """One line: a budget, and how much of it is used."""
    least = "" if budget.complete else "at least "
    state = ", reached" if budget.reached else ""
    spent, forecast = money(budget.spent, 2), money(budget.forecast, 2)
    return (
        f"{scope_text(budget)} {money(budget.usd_month, 2)} USD a month: {least}{spent} spent, {forecast} by its end"
        f" ({budget.percent} %{state})"
    )


def cost(
    run: typer.Context,
    by: Annotated[By, typer.Option(help="What a row of the table is.")] = By.CLUSTER,
    cluster: Annotated[str | None, typer.Option(help="Of this cluster alone.", autocompletion=cluster_names)] = None,
    output: Output = Form.TABLE,
) -> None:
    """Show what is paid now, and this month so far. It is an estimate from list prices, not a bill."""
    context = contexts.of(run)
    with context.client() as client:
        costs = client.costs.get(cluster)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, costs.document())
        return
    show_many(context, output, _printer(by), rows(costs.lines, by))
    if output is Form.NAME:
        return
    context.out.print(Text(f"total  {total(costs)}", style="bold"), soft_wrap=True)
    for budget in costs.budgets:
        style = "red" if budget.reached else "dim"
        context.out.print(Text(f"budget  {budget_text(budget)}", style=style), soft_wrap=True)
    if not costs.complete:
        context.say("Some prices are not known: it costs more than that.", "yellow")
    if costs.not_included:
        context.say(f"Not in it: {'; '.join(costs.not_included)}.", "dim")
