"""What every long operation is made of: changes written with their events, and the ledger of what is made in clouds."""
