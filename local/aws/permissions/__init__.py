"""Permission checks of AWS in a caller's name: a table with each call's actions and resources, its own and those that a
service asks for in turn, and who asks it at each call of a tenant's session."""
