"""Documents of people: where they come from, how they are read, and where a field stands in them."""
