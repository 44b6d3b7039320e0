"""Imports across packages: which module imports a module of another package, and which of them pass by its face."""

from __future__ import annotations

from dataclasses import dataclass

from tests.measure.names import Trees, packages_of, targets

DIVIDED = {"stockyard.operations", "stockyard.providers"}
"""Rooms of which each package is a room of its own."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the code. An import is a pair of modules of which one imports the other, however often."""

    modules: int
    packages: int
    imports: int
    across_packages: int
    """Imports between modules of two packages, a package being the folder that a module is in."""
    past_a_face: int
    """Those of them that name a module inside the other package, and not the package itself."""
    across_rooms: int
    """Imports between two rooms, such as ``stockyard.edge`` and ``stockyard.scheduling``, however deep inside."""


def room_of(module: str) -> str:
    """The room that a module is in: the first two parts of its name, three inside ``DIVIDED``."""
    parts = module.split(".")
    room = ".".join(parts[:2])
    return ".".join(parts[:3]) if room in DIVIDED else room


def counted(trees: Trees) -> Counts:
    """The counts of these modules."""
    packages = packages_of(trees)
    homes = {module: module if module in packages else module.rpartition(".")[0] for module in trees}
    imports = [
        (module, each)
        for module in trees
        for each in {target.module for _, target in targets(module, trees, module in packages)} - {module}
    ]
    across = [(importer, imported) for importer, imported in imports if homes[importer] != homes[imported]]
    return Counts(
        modules=len(trees),
        packages=len(set(homes.values())),
        imports=len(imports),
        across_packages=len(across),
        past_a_face=sum(imported not in packages for _, imported in across),
        across_rooms=sum(room_of(importer) != room_of(imported) for importer, imported in imports),
    )
