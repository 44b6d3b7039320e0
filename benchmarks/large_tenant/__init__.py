"""A tenant with a thousand clusters, and what people look at of it."""
