"""The truth: tables, and one function for each transaction. Imports `core` only.

| table | one row for each |
| --- | --- |
| conversations | incident thread; the fence (`token`), the lease, `signal_seq`, what it waits for |
| inbox | message that arrived, unique by the platform's own identity of it |
| tombstones | stop that was asked for |
| turns | run of the agent by one worker, with its stamp |
| transcript | committed message that the model is shown, never rewritten |
| calls | tool call: issued, started, done |
| requests | model request and what it cost |
| settlements | settle record, unique by turn |
| cards | progress message on the platform: wanted and shown revision |
| outbox | message of ours that the platform must take: answers, notes, charts, private words |

Every transaction is atomic; every write of a turn carries the conversation's token, and fails when that has
moved on.
"""
