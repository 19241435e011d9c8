"""Names of variables that have a meaning of their own in a Harness container.

Source: spec/authoring.md §3.5 (refusals 2 and 11, the warning), spec/converge.md §5.10.
"""

from __future__ import annotations

from typing import Final

NETWORK: Final = frozenset(
    {
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "NO_PROXY",
        "no_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NODE_USE_ENV_PROXY",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "GIT_SSL_CAINFO",
    }
)
"""What says how a program reaches the network and whom it trusts; jr2 sets them for a Custodian."""

OF_THE_CONTAINER: Final = frozenset({"HOME", "PATH"})
"""What every program of the container needs as it is."""

SIGNING: Final = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
    }
)
"""What a program signs requests with; a Custodian puts values into headers and cannot sign."""
