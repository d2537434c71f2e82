"""A test server that speaks the Anthropic Messages wire.

It plays scripts, simulates prompt caching, keeps a log and a ledger, and refuses what the real API refuses.
It imports nothing of ours. Read in this order: `reply` (what to script), `server` (how to run it),
`model_request` (what came in), `rules.table` (what is refused).
"""
