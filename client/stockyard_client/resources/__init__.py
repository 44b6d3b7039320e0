"""The resources of the API: a class for each, with the calls that it takes."""
