"""What the API refuses: one rule is one function; `table` lists them all, by name and in order."""
