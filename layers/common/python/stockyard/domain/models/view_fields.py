"""Kinds of values that many views show, each with what it means."""

from __future__ import annotations

CreatedAt = str
"""When it was made: RFC 3339 in UTC."""
UpdatedAt = str
"""When it was changed last: RFC 3339 in UTC."""
Version = int
"""Rises with each change. A change sends it back as ``If-Match``, as the ``ETag`` has it."""
Reason = str
"""A word for programs that says why it is in its phase; may be empty."""
Message = str
"""A sentence for people that says why it is in its phase; may be empty."""
NodeTypeName = str
"""The canonical name of a node type, ``provider.type``."""
CapacityType = str
"""``on-demand`` or ``spot``."""
UsdHour = float | None
"""USD an hour; null while no price is known."""
