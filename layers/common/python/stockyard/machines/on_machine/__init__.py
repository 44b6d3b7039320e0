"""Files that cloud-init writes to a machine. They are read as text, never imported by the product."""
