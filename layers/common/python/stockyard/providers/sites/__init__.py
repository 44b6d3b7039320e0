"""The way to what stands in a site, as a transport of httpx: who speaks through it knows nothing of sites."""

from stockyard.providers.sites.transport import SiteTransport

__all__ = ["SiteTransport"]
