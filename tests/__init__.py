"""Tests: `core`, `storage` and `bot` mirrored, whole stories, and servers that speak the real wire."""
