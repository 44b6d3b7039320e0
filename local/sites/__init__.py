"""Sites of the local cloud."""

from local.sites.served import LocalSite

__all__ = ["LocalSite"]
