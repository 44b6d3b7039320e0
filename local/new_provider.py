"""Begin a node provider: a folder with a copy of the simulated one, less its machines, and a line in the registry.

The conformance suite finds it. What fails there says what is still to be written.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PROVIDERS = Path("layers/common/python/stockyard/providers")
NAME = re.compile(r"[a-z][a-z0-9_]{1,30}")
CALLS = "machines.py"
"""The calls to the vendor: copied without their bodies."""
README = """# {title}

Copied from the simulated provider. What is still to be written stands in `machines.py`: each call to the vendor raises
until it is there. Then let `document.py` say what its documents have, `provider.py` how machines are launched from
them, and this file what somebody should know who runs it.
"""


def main(root: Path, name: str) -> str:
    """Write the folder and the line below ``root``; what to do next. Raises ``ValueError`` for an impossible name."""
    folder = root / PROVIDERS / "nodes" / name
    if not NAME.fullmatch(name):
        raise ValueError(f"NAME={name}: a name has 2 to 31 small letters, digits and _, a letter first")
    if folder.exists():
        raise ValueError(f"NAME={name}: there is such a provider already, in {folder.relative_to(root)}")
    folder.mkdir()
    title = name.replace("_", " ").title().replace(" ", "")
    for source in sorted((root / PROVIDERS / "nodes" / "simulated").glob("*.py")):
        text = source.read_text()
        text = _without_bodies(text, name) if source.name == CALLS else text
        # The record of a simulated machine stays as an example of what a machine is.
        text = re.sub(r"\bsimulated\b", name, text)
        (folder / source.name).write_text(re.sub(r"Simulated(?!Machine)", title, text))
    (folder / "README.md").write_text(README.format(title=title))
    registry = root / PROVIDERS / "registry.py"
    line = '    "nodes.simulated",\n'
    registry.write_text(registry.read_text().replace(line, f'{line}    "nodes.{name}",\n'))
    return f"Write {folder.relative_to(root) / CALLS} first; make test tells what is missing."


def _without_bodies(text: str, name: str) -> str:
    """Each public method says that it is not written yet; its docstring says what it has to do."""
    lines = text.splitlines()
    (kind,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    methods = [node for node in kind.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    for method in reversed(methods):
        docstring, last = method.body[0], method.body[-1]
        missing = f'        raise NotImplementedError("{name}: Machines.{method.name} is not written yet")'
        lines[docstring.end_lineno or 0 : last.end_lineno] = [missing]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    try:
        print(main(Path(), " ".join(sys.argv[1:])))
    except ValueError as error:
        sys.exit(str(error))
