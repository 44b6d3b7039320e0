"""Packing for price: the cheapest nodes for pods that care for nothing but room and the offers that they may use.

``solve(FreeProblem(...))`` answers with the nodes, each with the other offers that could carry it, the price, a lower
bound that holds for every packing, its proof, and the steps of work. Rules between pods (spread, affinity, ports) are
not known here: whoever has some hands in the pods that are free of them, or for whom they are settled, and takes the
nodes as a proposal.
"""

from stockyard.scheduling.packing.price.answers import Answers
from stockyard.scheduling.packing.price.model import (
    EVERY,
    NANO,
    Answer,
    Bin,
    Certificate,
    FreeProblem,
    Offer,
    Preferences,
    Shape,
    Space,
)
from stockyard.scheduling.packing.price.solve import lower_bound, solve

__all__ = [
    "EVERY",
    "NANO",
    "Answer",
    "Answers",
    "Bin",
    "Certificate",
    "FreeProblem",
    "Offer",
    "Preferences",
    "Shape",
    "Space",
    "lower_bound",
    "solve",
]
