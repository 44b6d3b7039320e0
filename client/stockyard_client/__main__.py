"""``python -m stockyard_client`` is the command line."""

from __future__ import annotations

from stockyard_client.cli import main

if __name__ == "__main__":
    main()
