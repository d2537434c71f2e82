"""Slack: one platform behind the `Chat` port."""
