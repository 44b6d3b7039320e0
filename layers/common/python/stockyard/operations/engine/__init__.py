"""Parts of every long operation: changes written with their events, and the ledger of what is made in clouds."""
