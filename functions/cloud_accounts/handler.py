"""The Lambda function of these routes: an HTTP API event (payload 2.0) in, its answer out."""

from __future__ import annotations

from functions.cloud_accounts.routes import http
from stockyard.edge.logs import logged

lambda_handler = logged(http.logger)(http.handle)
