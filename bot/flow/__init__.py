"""The loops: accept, decide, work, show, deliver, reap. They know ports and storage, never an adapter."""
