"""Documents that enter and leave the API, as pydantic models: one module per resource, imported only where it is
used."""
