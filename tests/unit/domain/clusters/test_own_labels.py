"""Labels that look like ours and mean nothing."""

from __future__ import annotations

from stockyard.domain.clusters.own_labels import OWN_LABELS, hint_of, unknown_labels


def test_labels_of_ours_and_of_others_are_no_matter():
    labels = [*OWN_LABELS, "team", "karpenter.sh/nodepool", "example.com/cluster"]
    assert unknown_labels(labels, (0, "metadata", "labels")) == []
    assert hint_of(labels) == ""


def test_what_looks_like_ours_is_told_with_what_was_meant():
    assert unknown_labels(["stockyard.io/cluster", "stockyard.dev/zzz"], (2, "metadata", "labels")) == [
        (
            (2, "metadata", "labels", "stockyard.io/cluster"),
            "Stockyard knows no such label; did you mean stockyard.dev/cluster?",
        ),
        ((2, "metadata", "labels", "stockyard.dev/zzz"), "Stockyard knows no such label."),
    ]
    assert hint_of(["team", "stockyard.dev/clster"]) == (
        "; stockyard.dev/clster means nothing; did you mean stockyard.dev/cluster?"
    )
