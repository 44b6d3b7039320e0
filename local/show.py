"""The output of ``python -m local run``: the plan's price, live progress, the tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

Call = Callable[..., Any]
"""``LocalCloud.call``."""
SYMBOLS = {
    "pending": ("·", "dim"),
    "running": ("▸", "yellow"),
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "skipped": ("-", "dim"),
}


class ExampleError(Exception):
    """The example cannot be read; the text says why."""


LIMIT_SECONDS = 300.0
POOLS_READY = "PoolsReady"
"""The condition of a cluster that says whether its pools have the nodes that they have to have."""


def create_and_watch(call: Call, body: Mapping[str, Any], console: Console) -> bool:
    """Creates the cluster, and shows its progress, tree and price. Returns False when it did not become ready.

    ``body`` is what creates it: a request's body, or a manifest that is applied.
    """
    path = "/v1/apply" if "kind" in body else "/v1/clusters"
    plan = call("POST", f"{path}?dry_run=true", body)["plan"]
    answer = call("POST", path, body)
    started = time.monotonic()
    cluster = answer["results"][0] if "results" in answer else answer
    operation = follow(call, cluster["operation_id"], console)
    if operation["status"] != "succeeded":
        error = operation.get("error") or {}
        console.print(f"[red]{cluster['name']} failed[/] in {error.get('phase')}: {error.get('cause')}")
        console.print(f"hint: {error.get('hint')}")
        return False
    console.print(f"[green]{cluster['name']} is ready[/] after {time.monotonic() - started:.1f} s")
    if await_pools(call, cluster["id"], console):
        console.print(f"[green]its pools have their nodes[/] after {time.monotonic() - started:.1f} s")
    console.print()
    console.print(tree(call("GET", f"/v1/clusters/{cluster['id']}/tree")))
    console.print(price(plan["price"]))
    return True


def name_of(document: Mapping[str, Any]) -> str:
    """The name in a request's body or in a manifest."""
    return str(document.get("name") or document.get("metadata", {}).get("name", ""))


def next_commands(home: str, cluster: str = "") -> str:
    """Commands to type next, in a second terminal. ``cluster`` is one that is ready, if any is."""
    lines = [f"set -a; . {home}/env; set +a", 'PATH="$PWD/.venv/bin:$PATH"']
    if cluster:
        lines += [f"stockyard cluster describe {cluster}", "stockyard provider create -f examples/lab.yaml"]
        lines += [f"stockyard claim create --name one --cluster {cluster} --provider lab --cpu 1 --wait"]
    else:
        lines += ["stockyard cluster create -f examples/aws-cluster.json --wait", "stockyard cluster describe demo"]
    typed = "\n".join(f"  {line}" for line in lines)
    end = "README.md has a tour. Ctrl-C stops everything; a new start begins anew."
    return f"\nType next, in a second terminal in this folder:\n\n{typed}\n\n{end}"


def read_example(path: Path) -> dict[str, Any]:
    """Read the document in the file, JSON or YAML. Raises ``ExampleError``."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExampleError(f"{path} cannot be read: {(error.strerror or '').lower()}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        position = getattr(error, "problem_mark", None)
        raise ExampleError(
            f"{path} is neither JSON nor YAML{f': line {position.line + 1}' if position else ''}"
        ) from None
    if not isinstance(document, dict):
        raise ExampleError(f"{path} holds no object.")
    return document


def follow(call: Call, operation_id: str, console: Console) -> dict[str, Any]:
    """Show an operation's phases until it ends. Raises ``TimeoutError`` after five minutes."""
    end = time.monotonic() + LIMIT_SECONDS
    states_printed: dict[str, str] = {}
    with Live(console=console, refresh_per_second=8) if console.is_terminal else nullcontext() as live:
        while time.monotonic() < end:
            operation: dict[str, Any] = call("GET", f"/v1/operations/{operation_id}")
            if live is not None:
                live.update(progress(operation))
            else:
                states_printed = _print_changes(operation, states_printed, console)
            if operation["status"] != "running":
                return operation
            time.sleep(0.2)
    raise TimeoutError(f"{operation_id} still runs after {LIMIT_SECONDS:.0f} s")


def await_pools(call: Call, cluster_id: str, console: Console) -> bool:
    """Show how many nodes the pools have until they have all. Returns False when there are no pools.

    Raises ``TimeoutError`` after five minutes.
    """
    if not call("GET", f"/v1/clusters/{cluster_id}/pools")["items"]:
        return False
    end, message_printed = time.monotonic() + LIMIT_SECONDS, ""
    while time.monotonic() < end:
        conditions = call("GET", f"/v1/clusters/{cluster_id}")["conditions"]
        condition: dict[str, str] = next((item for item in conditions if item["type"] == POOLS_READY), {})
        if condition.get("message", "") != message_printed:
            message_printed = condition.get("message", "")
            console.print(f"pools: {message_printed}", style="dim", markup=False, soft_wrap=True)
        if condition.get("status") == "True":
            return True
        time.sleep(0.2)
    raise TimeoutError(f"the pools lack nodes after {LIMIT_SECONDS:.0f} s: {message_printed}")


def _print_changes(operation: Mapping[str, Any], states_printed: Mapping[str, str], console: Console) -> dict[str, str]:
    """A line for each phase that has changed, for output that is no terminal. Returns the states printed."""
    states = {phase["name"]: str(phase["state"]) for phase in operation["phases"]}
    messages = {phase["name"]: str(phase.get("message") or "") for phase in operation["phases"]}
    for name, state in states.items():
        if state not in (states_printed.get(name), "pending"):
            console.print(f"{name} {state} {messages[name]}".rstrip(), soft_wrap=True)
    return states


def progress(operation: Mapping[str, Any]) -> Group:
    """The phases of an operation, one line each."""
    table = Table.grid(padding=(0, 2))
    for phase in operation["phases"]:
        symbol, style = SYMBOLS.get(phase["state"], ("?", ""))
        message = str(phase.get("message") or "")
        table.add_row(
            Text(symbol, style), Text(phase["name"], style), Text(phase["state"], style), Text(message, "dim")
        )
    return Group(Text(f"{operation['kind']}: {operation['progress']} %", "bold"), table)


def tree(answer: Mapping[str, Any]) -> Tree:
    """The cluster and all resources below it."""
    root = Tree(_label(answer))
    _grow(root, answer)
    return root


def _grow(branch: Tree, node: Mapping[str, Any]) -> None:
    for child in node.get("children", ()):
        _grow(branch.add(_label(child)), child)


def _label(node: Mapping[str, Any]) -> Text:
    text = Text(f"{node.get('kind', '')} ", "dim")
    text.append(str(node.get("name") or node.get("id") or ""), "bold")
    text.append(f"  {node.get('status', '')}", "green")
    for key in ("id", "type", "message"):
        if node.get(key):
            text.append(f"  {node[key]}", "cyan" if key == "id" else "dim")
    if node.get("usd_hour") is not None:
        text.append(f"  {node['usd_hour']:.4f} USD/hour", "dim")
    return text


def price(answer: Mapping[str, Any]) -> Table:
    """The price of the cluster, for an hour and a month."""
    table = Table(title=f"Price in {answer['currency']}", title_justify="left")
    table.add_column("item")
    table.add_column("hour", justify="right")
    table.add_column("month", justify="right")
    for item in answer["items"]:
        name = str(item["name"])
        table.add_row(name, _money(item.get("hour"), 4), _money(item.get("month"), 2))
    table.add_section()
    is_known = any(item.get("hour") is not None for item in answer["items"]) or not answer["items"]
    hour, month = (answer.get("hour"), answer.get("month")) if is_known else (None, None)
    table.add_row("total", _money(hour, 4), _money(month, 2), style="bold")
    return table


def _money(amount: Any, digits: int) -> str:
    return "unknown" if amount is None else f"{float(amount):.{digits}f}"
