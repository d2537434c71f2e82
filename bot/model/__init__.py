"""The model: requests to a provider, its streamed answers, what they cost, and the words that instruct it."""
