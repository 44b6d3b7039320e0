"""The labels by which manifests speak to Stockyard, and what looks like one and is none."""

from __future__ import annotations

from collections.abc import Iterable

from stockyard.domain.clusters.manifests import ACCOUNT
from stockyard.domain.nodes.manifests import CLUSTER, NAMESPACE, PROVIDER, FieldPath, Warnings
from stockyard.domain.pools.records import POOL_LABEL
from stockyard.domain.values.spelling import closest

OWN_LABELS = (CLUSTER, ACCOUNT, NAMESPACE, POOL_LABEL, PROVIDER)
_DOMAIN = "stockyard"
"""What the domains of labels contain that are meant for us."""


def unknown_labels(labels: Iterable[str], path: FieldPath) -> Warnings:
    """A warning for each label whose domain is ours or much like it, and that means nothing; ``path`` is theirs."""
    return [
        ((*path, label), f"Stockyard knows no such label{_suggestion(label) or '.'}")
        for label in labels
        if _is_odd(label)
    ]


def hint_of(labels: Iterable[str]) -> str:
    """Label that was probably meant by the first one without a meaning; empty where there is none."""
    return next((f"; {label} means nothing{_suggestion(label)}" for label in labels if _is_odd(label)), "")


def _is_odd(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    return bool(slash) and _DOMAIN in domain and label not in OWN_LABELS


def _suggestion(label: str) -> str:
    names = {own_label.partition("/")[2]: own_label for own_label in OWN_LABELS}
    likely = names.get(closest(label.partition("/")[2], names))
    return f"; did you mean {likely}?" if likely else ""
