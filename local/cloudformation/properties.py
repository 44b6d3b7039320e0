"""Writes what the CDK constructs take from the contract; ``--check`` compares instead (exit 1 when they differ).

    python -m local.cloudformation.properties [--check]

Of ``openapi.json`` it makes the typed properties of the constructs (``stockyard_cdk/properties``), and for their
handler which fields never change, since a creation has them and a change has not (``contract.py``). Fields that are
secrets are in neither: a template would show them.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "constructs"
PROPERTIES = FOLDER / "stockyard_cdk" / "properties"
CONTRACT = FOLDER / "stockyard_stack_resources" / "contract.py"
KINDS: Mapping[str, tuple[str, str]] = {
    "Cluster": ("ClusterCreate", "ClusterPatch"),
    "NodePool": ("PoolCreate", "PoolPatch"),
    "NodeProvider": ("NodeProviderCreate", "NodeProviderPatch"),
    "CloudAccount": ("CloudAccountCreate", "CloudAccountPatch"),
    "ClusterProfile": ("ClusterProfileCreate", "ClusterProfilePut"),
}
"""Construct -> the schemas of its creation and its change."""
CONSTANT = {"Cluster": {"cluster_type"}}
"""Fields with one value, which the constructs fill in."""
OPTIONAL = {"name"}
"""Fields that a construct may leave out where the API may not."""
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_WIDTH = 120


class Schemas:
    """Schemas of a contract, as types of Python. ``reached`` are those that types have named so far, in order."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas = document["components"]["schemas"]
        self.reached: list[str] = []

    def fields(self, name: str) -> Iterator[tuple[str, str, bool, str]]:
        """Name, type, whether it is required, and meaning of the fields of a schema, but for secrets."""
        schema = self._schemas[name]
        for field, value in schema["properties"].items():
            if not is_secret(value):
                yield field, self.type_of(value), field in schema.get("required", ()), value.get("description", "")

    def names(self, name: str) -> set[str]:
        """Names of all fields of a schema."""
        return set(self._schemas[name]["properties"])

    def secrets(self, name: str) -> list[str]:
        """Names of its fields that are secrets."""
        return sorted(field for field, value in self._schemas[name]["properties"].items() if is_secret(value))

    def unset(self, creation: str, change: str) -> dict[str, Any]:
        """Defaults of the fields of a creation that its change has and does not let go by null."""
        values: dict[str, Any] = {}
        for field, schema in self._schemas[change]["properties"].items():
            before = self._schemas[creation]["properties"].get(field, {})
            if field == "settings":
                values[field] = self._unset_settings(before)
            elif not is_nullable(schema):
                default = before.get("default", [] if schema.get("type") == "array" else None)
                values |= {} if default is None else {field: default}
        return values

    def _unset_settings(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Defaults of settings, where those of all drivers agree."""
        defaults: dict[str, list[Any]] = {}
        for option in schema["anyOf"]:
            for field, value in self._schemas[option["$ref"].rpartition("/")[2]]["properties"].items():
                defaults.setdefault(field, []).append(value.get("default"))
        return {
            field: values[0]
            for field, values in sorted(defaults.items())
            if values[0] is not None and all(value == values[0] for value in values)
        }

    def type_of(self, schema: Mapping[str, Any]) -> str:
        """The type of Python for a schema."""
        if "$ref" in schema:
            name = str(schema["$ref"]).rpartition("/")[2]
            if name not in self.reached:
                self.reached.append(name)
            return name
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else schema["enum"]
            return f"Literal[{', '.join(map(_literal, values))}]"
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self.type_of(option) for option in schema["anyOf"]))
        kind = schema.get("type")
        if kind == "array":
            return f"Sequence[{self.type_of(schema.get('items', {}))}]"
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"Mapping[str, {self.type_of(values) if isinstance(values, Mapping) else 'Any'}]"
        return "None" if kind == "null" else _TYPES.get(str(kind), "Any")


def is_secret(schema: Mapping[str, Any]) -> bool:
    """Whether a field is written and never shown."""
    return bool(schema.get("writeOnly")) or any(is_secret(option) for option in schema.get("anyOf", ()))


def is_nullable(schema: Mapping[str, Any]) -> bool:
    """Whether a field may be null."""
    return any(option.get("type") == "null" for option in schema.get("anyOf", ()))


def properties(document: Mapping[str, Any]) -> Mapping[str, str]:
    """Module -> its text: one for each construct, and their face. Each has the parts of its construct; those that an
    earlier construct has too are imported from there."""
    modules, homes = {}, dict[str, str]()
    for kind, (creation, _) in KINDS.items():
        schemas, module, left_out = Schemas(document), _snake(kind), CONSTANT.get(kind, set())
        classes = [_class(schemas, f"{kind}Properties", creation, f"Properties of a {kind}", left_out, OPTIONAL)]
        borrowed: set[str] = set()
        done: set[str] = set()
        while added := [name for name in schemas.reached if name not in done]:
            for name in added:
                done.add(name)
                if homes.setdefault(name, module) != module:
                    borrowed.add(name)
                    continue
                title = str(document["components"]["schemas"][name].get("description", "")).split(".")[0]
                classes.append(_class(schemas, name, name, title or f"{name} of the API", set(), set()))
        body = "\n\n".join(classes)
        sources = {homes[name]: [each for each in sorted(borrowed) if homes[each] == homes[name]] for name in borrowed}
        imports = [
            f"from stockyard_cdk.properties.{source} import {', '.join(names)}"
            for source, names in sorted(sources.items())
        ]
        head = f'"""Typed properties of a {kind}, written of the contract by ``local.cloudformation.properties``."""'
        modules[module] = "\n\n".join([head, *_imports(body), "\n".join(imports), "", body]) + "\n"
    faces = "\n".join(f"from stockyard_cdk.properties.{_snake(kind)} import {kind}Properties" for kind in sorted(KINDS))
    names = ", ".join(f'"{kind}Properties"' for kind in sorted(KINDS))
    title = '"""Typed properties of the constructs, written of the contract by ``local.cloudformation.properties``."""'
    return {**modules, "__init__": f"{title}\n\n{faces}\n\n__all__ = [{names}]\n"}


def _imports(body: str) -> list[str]:
    lines = ["from __future__ import annotations"]
    groups = {
        "collections.abc": [name for name in ("Mapping", "Sequence") if f"{name}[" in body],
        "typing": [name for name in ("Any", "Literal", "Required", "TypedDict") if re.search(rf"\b{name}\b", body)],
    }
    named = [f"from {module} import {', '.join(names)}" for module, names in groups.items() if names]
    return [*lines, "\n".join(named)]


def _literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _snake(kind: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()


def _class(schemas: Schemas, name: str, schema: str, title: str, left_out: set[str], optional: set[str]) -> str:
    lines = [f"class {name}(TypedDict, total=False):", *_docstring(f"{title.rstrip('.')}.")]
    for field, kind, required, meaning in schemas.fields(schema):
        if field in left_out:
            continue
        if keyword.iskeyword(field):
            raise ValueError(f"{schema}.{field} cannot be an argument")
        lines.append(f"    {field}: {f'Required[{kind}]' if required and field not in optional else kind}")
        lines += _docstring(meaning)
    return "\n".join([*lines, ""])


def _docstring(text: str) -> list[str]:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped:
        return []
    lines = textwrap.wrap(f'"""{escaped}"""', _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return [f"    {line}" for line in lines]


def contract(document: Mapping[str, Any]) -> str:
    """Text of the module with what the handler takes from the contract."""
    schemas = Schemas(document)
    fixed = {
        kind: tuple(sorted(schemas.names(creation) - schemas.names(change)))
        for kind, (creation, change) in KINDS.items()
    }
    rows = "\n".join(f"    {json.dumps(kind)}: {_tuple(fields)}," for kind, fields in fixed.items())
    unset = {kind: schemas.unset(creation, change) for kind, (creation, change) in KINDS.items()}
    return (
        '"""Fields by kind, written of the contract by ``local.cloudformation.properties``."""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping, Sequence\nfrom typing import Any\n\n"
        f"FIXED: Mapping[str, Sequence[str]] = {{\n{rows}\n}}\n"
        '"""Kind -> the fields of its creation that a change of it does not have."""\n'
        f"UNSET: Mapping[str, Mapping[str, Any]] = {unset!r}\n"
        '"""Kind -> what a change says in place of null, for fields that cannot be taken away: their defaults."""\n'
    )


def _tuple(values: tuple[str, ...]) -> str:
    return f"({', '.join(json.dumps(value) for value in values)}{',' if len(values) == 1 else ''})"


def generated(document: Mapping[str, Any]) -> Mapping[Path, str]:
    """File -> its text, formatted."""
    modules = {PROPERTIES / f"{name}.py": _formatted(text) for name, text in properties(document).items()}
    return {**modules, CONTRACT: _formatted(contract(document))}


def _formatted(text: str) -> str:
    ruff = str(Path(sys.executable).parent / "ruff")
    for command in (["check", "--quiet", "--fix-only", "--select", "I,RUF022"], ["format", "--quiet"]):
        whole = [ruff, *command, "--stdin-filename", "constructs/stockyard_cdk/generated.py", "-"]
        text = subprocess.run(whole, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main(arguments: list[str] | None = None) -> int:
    """Write the modules, or with ``--check`` compare."""
    parser = argparse.ArgumentParser(prog="python -m local.cloudformation.properties", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed files and write nothing")
    options = parser.parse_args(arguments)
    stale = 0
    for path, text in generated(json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            stale = 1
            print(f"{path.relative_to(ROOT)} is not what openapi.json says; run: make openapi", file=sys.stderr)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
