"""What is the same on every platform: how people's words are read, and how long texts and numbers are told."""
