"""``stockyard simulate``: what a history of pods would have cost under some policies of disruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from stockyard_client.base_models import Model
from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.input.inputs import read_patch
from stockyard_client.cli.output.output import Form, Output, show_many, write_document
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.cli.pools.placements import reduced
from stockyard_client.resources.simulations import Simulation

POLICIES = ("None", "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
_ANNOTATIONS = frozenset({"karpenter.sh/do-not-disrupt", "controller.kubernetes.io/pod-deletion-cost"})
"""What annotations say of the disruption of pods. No other one is sent: they may hold anything."""


class Replay(Model):
    """One policy's outcome."""

    policy: str
    outcome: Simulation
    saved: float | None = None
    """The part of the first policy's money that this one saves; None where they do not compare."""


def _share(row: Replay) -> str | None:
    return None if row.saved is None else f"{row.saved:.1%}"


def _duration(seconds: float) -> str:
    minutes, odd_seconds = divmod(round(seconds), 60)
    return f"{minutes}m{odd_seconds:02}s" if minutes else f"{odd_seconds}s"


REPLAYS: Printer[Replay] = Printer(
    (
        Column("POLICY", lambda r: r.policy),
        Column("USD", lambda r: f"{r.outcome.usd:.2f}"),
        Column("SAVED", _share),
        Column("MEAN NODES", lambda r: f"{r.outcome.mean_nodes:.1f}"),
        Column("PEAK", lambda r: r.outcome.peak_nodes),
        Column("NODE HOURS", lambda r: f"{r.outcome.node_hours:.1f}"),
        Column("EVICTIONS", lambda r: r.outcome.evictions),
        Column("WAITS", lambda r: r.outcome.waits.count),
        Column("LONGEST", lambda r: _duration(r.outcome.waits.longest_seconds)),
        Column("MEAN WAIT", lambda r: _duration(r.outcome.waits.mean_seconds), wide=True),
        Column("LAUNCHED", lambda r: r.outcome.nodes, wide=True),
        Column("DECISIONS", lambda r: r.outcome.decision_count, wide=True),
        Column("GIVEN UP", lambda r: r.outcome.abandoned, wide=True),
        Column("UNTIL", lambda r: r.outcome.ended_at, wide=True),
    ),
    lambda r: r.policy,
)


def simulate(
    run: typer.Context,
    file: Annotated[str, typer.Option("--file", "-f", help="The trace, JSON or YAML; - reads standard input.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="One of the trace's policies by name, or None, WhenEmpty, WhenEmptyOrUnderutilized, Balanced; may be"
            " repeated. Default: the trace's, or all four."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="On its pools, as if the trace named it.", autocompletion=cluster_names),
    ] = None,
    output: Output = Form.TABLE,
) -> None:
    """Replay a history of pods against policies. Money, nodes and evictions of each are shown; nothing is made."""
    context = contexts.of(run)
    document = read_patch(context, file, "")
    policies = _policies_of(document.pop("policies", None), policy or ())
    trace = _reduced(document) | ({"cluster": cluster} if cluster else {})
    rows: list[Replay] = []
    with context.client() as client:
        for name, body in policies.items():
            outcome = client.simulations.run(trace, policy=body)
            base = rows[0].outcome if rows else outcome
            saved = 1 - outcome.usd / base.usd if rows and base.usd and base.ended_at == outcome.ended_at else None
            rows.append(Replay(policy=name, outcome=outcome, saved=saved))
    if output in {Form.JSON, Form.YAML}:
        write_document(output, [{"policy": row.policy, **row.outcome.document()} for row in rows])
    else:
        show_many(context, output, REPLAYS, rows)
    _say_what_is_not_counted(context, rows, show_pods=output in {Form.TABLE, Form.WIDE})


def _say_what_is_not_counted(context: contexts.Context, rows: Sequence[Replay], *, show_pods: bool) -> None:
    for row in rows:
        for warning in row.outcome.warnings:
            context.say(f"Warning: {row.policy}: {warning.get('detail', '')}", "yellow")
        for item in row.outcome.without_place if show_pods else ():
            text = f"! {row.policy}: {item.count} pods of {item.name} have no place: {item.why}"
            context.out.print(Text(text, style="red"), soft_wrap=True)
    if len({row.outcome.ended_at for row in rows}) > 1:
        context.say(
            "Warning: the policies are counted up to different moments, so their sums do not compare.", "yellow"
        )


def _policies_of(written: Any, names: Sequence[str]) -> dict[str, Any]:
    """The policies to replay, by name."""
    own = _by_name(written) if written is not None else {}
    defaults = {name: {"consolidationPolicy": name} for name in POLICIES}
    if not names:
        return own or defaults
    known_policies = {**defaults, **own}
    for name in names:
        if name not in known_policies:
            raise BadInput(f"there is no policy {name}; there are {', '.join(known_policies)}")
    return {name: known_policies[name] for name in names}


def _by_name(written: Any) -> dict[str, Any]:
    if not isinstance(written, list) or not all(isinstance(entry, dict) for entry in written):
        raise BadInput("policies: a list of objects is needed")
    policies: dict[str, Any] = {}
    for number, entry in enumerate(written):
        name = entry.get("name")
        if not isinstance(name, str) or not name or name in policies:
            raise BadInput(f"policies/{number}/name: a text that no other policy has is needed")
        policies[name] = {field: value for field, value in entry.items() if field != "name"}
    return policies


def _reduced(document: Mapping[str, Any]) -> dict[str, Any]:
    """The trace with what decides where pods may go and whether they may move, and nothing else of the pods."""
    trace = dict(document)
    if isinstance(trace.get("daemonSets"), list):
        trace["daemonSets"] = [reduced(manifest) for manifest in trace["daemonSets"]]
    if isinstance(trace.get("events"), list):
        trace["events"] = [_reduced_event(event) for event in trace["events"]]
    return trace


def _reduced_event(event: Any) -> Any:
    if not isinstance(event, dict) or not isinstance(event.get("arrive"), list):
        return event
    return {**event, "arrive": [reduced(manifest, _ANNOTATIONS) for manifest in event["arrive"]]}
