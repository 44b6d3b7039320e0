"""Commands that apply, compare and delete manifests."""
