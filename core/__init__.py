"""The rules of Watchkeeper: values in, values out; nothing here waits, reads a clock or touches the world.

Read in this order: `history` (what the model is shown), `balance` (open calls), `signals` (what may end a
turn), `policy` (what a message may do), `turn` (the decisions of a running turn), `reasons` (how turns end),
`resume` (what a crash left), `card` (what people see).
"""
