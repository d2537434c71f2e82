"""The bundled incident: a small shop, all of it computed, with one fault or none. See docs/incident.md."""

from pathlib import Path

RUNBOOKS = Path(__file__).parent / "runbooks"
