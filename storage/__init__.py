"""What is remembered: tables, and one function for each transaction."""
