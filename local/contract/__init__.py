"""Files that are made from the contract, beside the contract itself."""
