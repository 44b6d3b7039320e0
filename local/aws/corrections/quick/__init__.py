"""Makes moto's server quick: answers, clients, tables and catalogues that are kept."""
