"""Files that cloud-init writes to a node. They are read as text, never imported by the product."""
