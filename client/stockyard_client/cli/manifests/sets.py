"""Folders as sets of manifests: a plan first, then what it says, then the removal of what no document names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.bodies import check_manifest
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.documents.selection import Selector, check_each_once, labels_of, names_of, of_cluster
from stockyard_client.cli.documents.sources import sources_of
from stockyard_client.cli.manifests.removals import Doomed, ordered, plan_of
from stockyard_client.errors import ApiError
from stockyard_client.models import Plan, Price

if TYPE_CHECKING:
    from stockyard_client.cli.context import Context
    from stockyard_client.client import Client

SetName = Annotated[
    str | None,
    typer.Option(
        "--set",
        metavar="NAME",
        help="The set that the documents are of, such as shop/production: what they apply belongs to it.",
    ),
]
Selection = Annotated[
    str | None,
    typer.Option("--selector", "-l", metavar="K=V", help="Only documents, and members of the set, with these labels."),
]
Take = Annotated[bool, typer.Option("--take", help="Also what belongs to another set; it is of this one then.")]
_NOUNS = {"node-claim": "claim", "node-provider": "provider", "cluster-profile": "profile"}


@dataclass(frozen=True, slots=True)
class Folder:
    """Documents that are applied together, and which members of the set are left where no document names them."""

    documents: Sequence[dict[str, Any]]
    set_name: str | None = None
    take: bool = False
    prune: bool = False
    selector: Selector = field(default_factory=lambda: Selector(None))
    unselected_names: frozenset[str] = frozenset()
    """Names in documents that the selector leaves out: what is called so stays."""

    def leaves_out(self, member: dict[str, Any]) -> bool:
        """Whether a member that no document names is to be removed when the set is pruned."""
        return self.selector.takes(member.get("labels") or {}) and member.get("name") not in self.unselected_names

    def unnamed(self, plan: Plan) -> list[Doomed]:
        """Members that no document names, in the order in which they are removed. Pools go with their cluster."""
        things = [doomed_member(member) for member in plan.unnamed if self.leaves_out(member)]
        clusters = {thing.name for thing in things if thing.noun == "cluster"}
        return ordered([thing for thing in things if thing.noun != "pool" or thing.cluster not in clusters])


def read_folder(
    context: Context,
    paths: Sequence[str],
    *,
    recursive: bool,
    cluster: str | None,
    selector: str | None,
    set_name: str | None,
) -> Folder:
    """The manifests in files, folders and standard input that the selector takes. Refusals name their lines. Raises
    :class:`BadInput`."""
    from stockyard_client.cli.documents.documents import documents_of

    every = documents_of(sources_of(paths, recursive=recursive))
    for document in every:
        check_manifest(document)
    check_each_once(every, cluster)
    rules = Selector(selector)
    documents = [document for document in every if rules.takes(labels_of(document.value))]
    if not documents:
        raise BadInput(f"--selector {selector}: no document has such labels")
    for number, document in enumerate(documents):
        context.field_sources.append(FieldSource(document, at=f"/{number}"))
    left_out = [document for document in every if document not in documents]
    values = [of_cluster(document.value, cluster) for document in documents]
    return Folder(values, set_name, selector=rules, unselected_names=frozenset(names_of(left_out)))


def doomed_member(member: dict[str, Any]) -> Doomed:
    """A member of a set as a thing to remove."""
    noun = _NOUNS.get(member["kind"], member["kind"])
    return Doomed(noun, member["name"], member.get("cluster") or "", id=member["id"])


@dataclass(frozen=True, slots=True)
class FolderPlan:
    """Effects of applying a folder."""

    plan: Plan
    """What is made, changed and, where the set is pruned, removed; the price is that of all of it together."""
    removals: list[Doomed]
    remaining: list[Doomed]
    """Members that no document names, where the set is not pruned."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be done."""
        return not (self.plan.creates or self.plan.changes or self.plan.deletes)


def plan_folder(client: Client, folder: Folder) -> FolderPlan:
    """Plan what applying the folder does; nothing is written."""
    plan = client.manifests.plan(folder.documents, set_name=folder.set_name, take=folder.take)
    unnamed = folder.unnamed(plan)
    if not folder.prune:
        return FolderPlan(plan, [], unnamed)
    deletes, warnings = list(plan.deletes), list(plan.warnings)
    saved: list[dict[str, Any]] = []
    for thing in unnamed:
        deletes.append({"kind": thing.noun, "name": _called(thing)})
        try:
            part = plan_of(client, thing)
        except ApiError as error:
            if error.status != 409:  # what uses it goes before it
                raise
            continue
        warnings += [{"pointer": "", "detail": f"{thing.title}: {_detail(line)}"} for line in part.warnings]
        saved += part.price.items if part.price else ()
    more = {"price_before": _with_items(plan.price_before, saved)} if saved else {}
    whole = plan.model_copy(update={"deletes": tuple(deletes), "warnings": tuple(warnings), **more})
    return FolderPlan(whole, unnamed, [])


def say_kept(context: Context, planned: FolderPlan) -> list[str]:
    """Name the members that no document names and that stay."""
    remarks = [
        f"Kept: {thing.title} is of this set, and no document names it; --prune removes it."
        for thing in planned.remaining
    ]
    for remark in remarks:
        context.say(remark, "yellow")
    return remarks


def _called(thing: Doomed) -> str:
    return f"{thing.name} of {thing.cluster}" if thing.cluster else thing.name


def _detail(line: Any) -> str:
    return str(line.get("detail")) if isinstance(line, dict) else str(line)


def _with_items(price: Price | None, items: Sequence[dict[str, Any]]) -> Price:
    """The price with more lines."""
    every = [*(price.items if price else ()), *items]
    sums: dict[str, Any] = {}
    for unit in ("hour", "month"):
        prices = [float(item[unit]) for item in every if item.get(unit) is not None]
        sums |= {f"known_{unit}": sum(prices), unit: sum(prices) if len(prices) == len(every) else None}
    return Price(items=tuple(every), complete=sums["hour"] is not None, **sums)


def undone(before: Plan, after: Plan) -> tuple[list[str], list[str]]:
    """Titles of what a plan had to make or change and a later one has not, and of what both have."""
    remaining = _titles(after)
    done = [title for title in _titles(before) if title not in remaining]
    return done, [title for title in _titles(before) if title in remaining]


def _titles(plan: Plan) -> list[str]:
    entries = [entry for entry in (*plan.creates, *plan.changes) if isinstance(entry, dict)]
    titles = (f"{str(entry.get('kind', '')).replace('-', ' ')} {entry.get('name', '')}".strip() for entry in entries)
    return list(dict.fromkeys(titles))
