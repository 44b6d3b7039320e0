"""``python -m local serve`` and ``python -m local run [--once]``: the product on this machine."""

from __future__ import annotations

import argparse
import faulthandler
import functools
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from local.functions.apart import Apart
from local.proxies import without_proxy

if TYPE_CHECKING:
    from local.fault_plan import FaultPlan

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "aws-cluster.json"


STOP_SECONDS = 30
SIGNAL_SECONDS = 0.5
"""Time between two looks for a signal: one that the system gave to another thread does not end a wait of the main one,
where alone Python handles it."""


class Stopped(Exception):
    """A signal has asked the process to end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM (exit 0); 1 when it cannot start or the cluster does not become ready."""
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, meaning in (("serve", "start the local cloud"), ("run", "start it and create the example's cluster")):
        command = commands.add_parser(name, help=meaning)
        command.add_argument("--port", type=_port, default=0, help="port of the API; 0 takes a free one")
        command.add_argument("--home", type=Path, default=ROOT / ".local", help="folder of logs, caches and env")
        command.add_argument("--keycloak", action="store_true", help="a real Keycloak (needs Java and Maven)")
        command.add_argument("--kubernetes", action="store_true", help="a real control plane for each cluster")
        command.add_argument("--no-limits", action="store_true", help="take any rate of requests")
        command.add_argument(
            "--apart", action="append", default=[], metavar="TENANT", help="its functions have a core of their own"
        )
        command.add_argument("--site", metavar="NAME", help="a site with a host that only its connector reaches")
        command.add_argument("--faults", type=Path, help="a JSON file that says what is to go wrong")
        if name == "run":
            command.add_argument("--example", type=Path, default=EXAMPLE, help="a request body, or a manifest in YAML")
            command.add_argument("--once", action="store_true", help="end when the cluster is ready")
    options = parser.parse_args(arguments)
    without_proxy(os.environ)
    stop_requested = threading.Event()
    _on_signals(stop_requested)
    try:
        return _work(options, Console(highlight=False), stop_requested)
    except Stopped:
        return 0
    finally:
        _ignore_signals()
        faulthandler.cancel_dump_traceback_later()


def _work(options: argparse.Namespace, console: Console, stop_requested: threading.Event) -> int:
    # Imported here, because the imports take a second in which Ctrl-C must end quietly too.
    from local.fault_plan import PlanError, read
    from local.home import StartError, check
    from local.show import ExampleError, read_example
    from local.template import TemplateError

    try:
        check(options.home, options.port)
        plan = read(options.faults) if options.faults else None
        example = read_example(options.example) if options.command == "run" else None
        return _serve(options, console, stop_requested, plan, example)
    except (StartError, TemplateError, TimeoutError, PlanError, ExampleError) as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
    except Stopped:
        raise
    except Exception as error:
        log = options.home / "logs" / "failure.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(traceback.format_exc(), encoding="utf-8")
        text = f"the local cloud failed: {type(error).__name__}: {error} ({log} says where)"
        console.print(text, style="red", markup=False, soft_wrap=True)
    return 1


def _serve(
    options: argparse.Namespace,
    console: Console,
    stop_requested: threading.Event,
    plan: FaultPlan | None,
    example: dict[str, Any] | None,
) -> int:
    """Serve until the end is asked for; with an example, create that cluster. The exit code."""
    console.print("starting the local cloud", style="dim")
    from local.aws.corrections.quick.clients import quick_clients

    with quick_clients():  # moto makes three sessions while it is imported
        from local.aws.corrections.scarcity import take_away
        from local.cloud import LocalCloud
        from local.fault_plan import follow_zones
        from local.show import create_and_watch, next_commands

    cloud_options = {
        "port": options.port,
        "home": options.home,
        "limits": not options.no_limits,
        "apart": Apart.of(options.apart),
        "site": options.site,
    }
    say = functools.partial(console.print, style="dim")
    reals = {"keycloak": options.keycloak, "kubernetes": options.kubernetes}
    with LocalCloud(**cloud_options, **reals, plan=plan, say=say) as cloud:
        if options.faults:
            follower = (options.faults, take_away, stop_requested)
            threading.Thread(target=follow_zones, args=follower, daemon=True, name="zones").start()
        console.print(f"API {cloud.url}", highlight=False)
        console.print(f"Console {cloud.url}/console/", highlight=False)
        ready = example is None or create_and_watch(cloud.call, example, console)
        if options.command == "run" and options.once:
            return 0 if ready else 1
        name = (
            str((example or {}).get("name") or (example or {}).get("metadata", {}).get("name") or "") if ready else ""
        )
        console.print(next_commands(_relative(cloud.home), name), markup=False, soft_wrap=True)
        wait(stop_requested)
    return 0


def wait(stop_requested: threading.Event) -> None:
    """Wait for the end."""
    while not stop_requested.wait(SIGNAL_SECONDS):
        pass


def _relative(path: Path) -> str:
    """A path as one types it here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to 65535")
    return int(text)


def _on_signals(stop_requested: threading.Event) -> None:
    def stop(_number: int, _frame: object) -> None:
        _ignore_signals()  # A second Ctrl-C must not interrupt the clean-up.
        faulthandler.dump_traceback_later(STOP_SECONDS)  # Shows what hangs if the clean-up does not end.
        stop_requested.set()
        raise Stopped

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    faulthandler.register(signal.SIGUSR1)  # Shows what every thread does, whatever the main one waits for.


def _ignore_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
