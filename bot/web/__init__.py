"""The HTTP surface: health, readiness, Slack over HTTP."""
