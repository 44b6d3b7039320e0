"""The hardware of one device: power, the installer that runs at each boot, and what it leaves on the disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

UP, DOWN, BOOTING, INSTALLING = "UP", "DOWN", "BOOTING", "INSTALLING"
WIPES = frozenset({"FULL"})
"""Install modes that make a disk anew."""
FINALIZES = frozenset({"FULL", "AUTO"})
"""Install modes at whose end the finalize script runs."""


@dataclass
class Hardware:
    """A machine with one disk. Each boot asks the head node for its mode once, when its installer begins."""

    boot: timedelta
    install: timedelta
    on: bool = True
    started_at: datetime | None = None
    """When it was last switched on or reset; None once that boot is over."""
    is_installing: bool = False
    """Whether the installer of this boot has begun."""
    mode: str | None = None
    wipes: int = 0
    """How often its disk was made anew."""
    scripts: list[str] = field(default_factory=list)
    """The finalize scripts that ran since the last wipe, in order: what the disk has of them."""

    def start(self, now: datetime) -> None:
        """Switch it on, or off and on."""
        self.on, self.started_at, self.is_installing, self.mode = True, now, False, None

    def stop(self) -> None:
        """Switch it off; an installation that runs stays as it is."""
        self.on, self.started_at, self.is_installing, self.mode = False, None, False, None

    def installer_begins(self, now: datetime) -> bool:
        """Whether the installer of this boot is due and has not begun yet."""
        return self.on and self.started_at is not None and not self.is_installing and now >= self.started_at + self.boot

    def begin(self, mode: str) -> None:
        """The installer begins in that mode."""
        self.is_installing, self.mode = True, mode
        if mode in WIPES:
            self.wipes += 1
            self.scripts.clear()

    def installer_ends(self, now: datetime) -> bool:
        """Whether the installer that has begun is through by now."""
        return self.is_installing and self.started_at is not None and now >= self.started_at + self.boot + self.install

    def end(self, finalize: str) -> None:
        """The installer ends; the machine is up."""
        if self.mode in FINALIZES and finalize:
            self.scripts.append(finalize)
        self.started_at, self.is_installing = None, False

    @property
    def status(self) -> str:
        """Status of the device, as the head node shows it."""
        if not self.on:
            return DOWN
        if self.started_at is None:
            return UP
        return INSTALLING if self.is_installing else BOOTING
