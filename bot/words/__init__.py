"""What is the same on every platform: how words are read, texts are split and numbers are told."""
