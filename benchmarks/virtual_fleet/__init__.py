"""A fleet of clusters in virtual time: the product's own functions over a table in memory."""
