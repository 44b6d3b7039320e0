"""Arguments of handlers have the type that the parameter says; mypy does not see who calls a handler."""

from __future__ import annotations

import ast
from pathlib import Path

FUNCTIONS = Path(__file__).parents[2] / "functions"
TYPES = {
    "services": "Services",
    "cluster": "Cluster",
    "account": "CloudAccount",
    "claim": "NodeClaim",
    "site": "Site",
}


def test_parameters_of_handlers_have_the_types_that_are_given() -> None:
    handlers = [
        (f"{path.parent.name}:{node.name}", node)
        for path in sorted(FUNCTIONS.rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and any("http.route" in ast.unparse(each) for each in node.decorator_list)
    ]
    assert len(handlers) > 80
    for name, handler in handlers:
        first = handler.args.args[0].annotation
        assert first is not None
        assert ast.unparse(first) == "Request", name
        for parameter in handler.args.args[1:]:
            assert parameter.annotation is not None, name
            assert ast.unparse(parameter.annotation) == TYPES[parameter.arg], name
