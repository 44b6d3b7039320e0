"""Writes and reads of the store as parameters of DynamoDB's calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from stockyard.adapters.dynamodb import batch, codec, keys
from stockyard.domain.platform import home
from stockyard.domain.records import SCHEMA, Counter
from stockyard.ports import Add, Check, Create, Put, Remove, Replace, Write

_LAST = "\U0010ffff"
"""Sorts behind every other character."""


class Expression:
    """Collects names and values of expressions, so that none of them is ever parsed as part of one."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, codec.Attribute] = {}

    def name(self, attribute: str) -> str:
        """The placeholder of an attribute's name."""
        return self._names.setdefault(attribute, f"#n{len(self._names)}")

    def value(self, value: codec.Attribute) -> str:
        """The placeholder of a value."""
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def equal(self, condition: batch.Equal) -> str:
        """The condition in DynamoDB's words."""
        name = self.name(condition.attribute)
        absent = f"attribute_not_exists({name})"
        if condition.value is None:
            return absent
        equality = f"{name} = {self.value(condition.value)}"
        return f"({equality} OR {absent})" if condition.absent else equality

    def parameters(self) -> dict[str, Any]:
        """The placeholders, for the call."""
        parameters: dict[str, Any] = {}
        if self._names:
            parameters["ExpressionAttributeNames"] = {placeholder: name for name, placeholder in self._names.items()}
        if self._values:
            parameters["ExpressionAttributeValues"] = self._values
        return parameters


def key(tenant: str, kind: keys.Kind, id: str) -> codec.Item:
    """The primary key of a record."""
    return {"pk": {"S": keys.partition(tenant, kind, id)}, "sk": {"S": id}}


def transact_item(table: str, tenant: str, write: Write, emptied: bool = False) -> dict[str, Any]:
    """One write as a member of ``TransactItems``.

    ``emptied`` makes a subtraction set its counter to 0, on condition that the counter is too small for it.
    """
    match write:
        case Create() | Replace() | Put():
            return {"Put": _put(table, tenant, write)}
        case Remove():
            return {"Delete": _delete(table, tenant, write)}
        case Check():
            expression = Expression()
            conditions = [f"attribute_exists({expression.name('pk')})"]
            conditions += [expression.equal(equal) for equal in batch.equalities(write.kind, write.equals)]
            target_key = key(tenant, write.kind, write.id)
            return {"ConditionCheck": _guarded({"TableName": table, "Key": target_key}, conditions, expression)}
        case Add():
            return {"Update": _update(table, tenant, write, emptied)}
        case _:
            assert_never(write)


def _guarded(parameters: dict[str, Any], conditions: Sequence[str], expression: Expression) -> dict[str, Any]:
    """``parameters`` with the conditions; a refusal then tells what is stored instead."""
    if conditions:
        parameters["ConditionExpression"] = " AND ".join(conditions)
        parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return parameters | expression.parameters()


def _put(table: str, tenant: str, write: Create | Replace | Put) -> dict[str, Any]:
    expression, conditions = Expression(), []
    if isinstance(write, Create):
        conditions = [f"attribute_not_exists({expression.name('pk')})"]
    elif isinstance(write, Replace):
        version = codec.encode(write.record.version - 1)
        conditions = [f"{expression.name('version')} = {expression.value(version)}"]
        conditions += [expression.equal(equal) for equal in batch.equalities(type(write.record), write.fence)]
    return _guarded({"TableName": table, "Item": codec.to_item(tenant, write.record)}, conditions, expression)


def _delete(table: str, tenant: str, write: Remove) -> dict[str, Any]:
    expression, conditions = Expression(), []
    if write.version is not None:
        conditions = [f"{expression.name('version')} = {expression.value(codec.encode(write.version))}"]
        conditions += [expression.equal(equal) for equal in batch.equalities(write.kind, write.fence)]
    return _guarded({"TableName": table, "Key": key(tenant, write.kind, write.id)}, conditions, expression)


def _update(table: str, tenant: str, write: Add, emptied: bool) -> dict[str, Any]:
    expression = Expression()
    value, version = expression.name("value"), expression.name("version")
    owner = home(tenant, Counter, write.counter)
    fixed = {"kind": {"S": Counter.__name__}, "tenant": {"S": owner}, "id": {"S": write.counter}}
    fixed["schema"] = {"N": str(SCHEMA)}
    fixed[keys.MOVED] = {"S": "down" if write.by < 0 else "up"}
    sets = [f"{expression.name(name)} = {expression.value(attribute)}" for name, attribute in fixed.items()]
    adds = [f"{version} {expression.value(codec.encode(1))}"]
    if emptied:
        sets.append(f"{value} = {expression.value(codec.encode(0))}")
    else:
        adds.append(f"{value} {expression.value(codec.encode(write.by))}")
    conditions = []
    if write.by < 0:
        # Only what is said is collected: DynamoDB refuses a value that no expression names.
        need = expression.value(codec.encode(-write.by))
        enough, short = f"{value} >= {need}", f"(attribute_not_exists({value}) OR {value} < {need})"
        conditions = [short if emptied else enough]
    elif write.limit is not None and write.by > 0:
        room = write.limit - write.by
        fits = f"{value} <= {expression.value(codec.encode(room))}"
        # A counter that is not there yet is 0, which fits only when the limit is not below the addition.
        conditions = [f"(attribute_not_exists({value}) OR {fits})" if room >= 0 else fits]
    update = {
        "TableName": table,
        "Key": key(tenant, Counter, write.counter),
        "UpdateExpression": f"SET {', '.join(sets)} ADD {', '.join(adds)}",
    }
    return _guarded(update, conditions, expression)


def query(
    table: str,
    tenant: str,
    kind: keys.Kind,
    *,
    prefix: str = "",
    after: str | None = None,
    newest_first: bool = False,
    since: str = "",
    until: str = "",
    where: Mapping[str, Any] | None = None,
    subject: str | None = None,
) -> dict[str, Any] | None:
    """Parameters of a query over a tenant's records of one kind; None when nothing can match. ``since`` and ``until``
    are the least and the greatest id, empty for none.

    With a ``subject`` it goes by the entries of the records about it, which are a moment old. Else it is consistent.
    Going down from ``after``, the record ``after`` itself may be among the answers.
    """
    expression = Expression()
    stem, partition = "", keys.partition(tenant, kind, prefix)
    if subject is not None:
        stem, partition = "all_", keys.subject_partition(tenant, kind, subject)
    pk = f"{expression.name(f'{stem}pk')} = {expression.value({'S': partition})}"
    sort_range = _sort_range(prefix, after, newest_first, since, until)
    if sort_range is None:
        return None
    sort = _sort_condition(expression, f"{stem}sk", *sort_range)
    filters = [expression.equal(equal) for equal in batch.equalities(kind, where or {})]
    parameters: dict[str, Any] = {
        "TableName": table,
        **({"ConsistentRead": True} if subject is None else {"IndexName": keys.EVERYTHING_INDEX}),
        "ScanIndexForward": not newest_first,
        "KeyConditionExpression": f"{pk} AND {sort}" if sort else pk,
    }
    if filters:
        parameters["FilterExpression"] = " AND ".join(filters)
    return parameters | expression.parameters()


def lacking_entries(table: str, tenant: str, kind: keys.Kind, since: str, until: str) -> dict[str, Any] | None:
    """Parameters of a query over the tenant's records of a kind that have no entry by their subject."""
    parameters = query(table, tenant, kind, since=since, until=until)
    filters = {"FilterExpression": "attribute_not_exists(all_pk)", "ConsistentRead": False}
    return parameters and {**parameters, **filters}


def _sort_range(prefix: str, after: str | None, newest_first: bool, since: str, until: str) -> tuple[str, str] | None:
    """The least and the greatest sort key, empty for no limit; None when no key is between them."""
    if newest_first and after == "":
        return None  # going down from an empty id: nothing is below it
    low = max(prefix, since)
    highs = [until, f"{prefix}{_LAST}" if prefix else ""]
    if after is not None and newest_first:
        highs.append(after)
    elif after is not None:
        low = max(low, f"{after}\x00")
    high = min(filter(None, highs), default="")
    return None if high and low > high else (low, high)


def _sort_condition(expression: Expression, attribute: str, low: str, high: str) -> str:
    """The condition on the sort key; empty for none."""
    if low and high:
        pair = f"{expression.value({'S': low})} AND {expression.value({'S': high})}"
        return f"{expression.name(attribute)} BETWEEN {pair}"
    if low:
        return f"{expression.name(attribute)} >= {expression.value({'S': low})}"
    if high:
        return f"{expression.name(attribute)} <= {expression.value({'S': high})}"
    return ""
