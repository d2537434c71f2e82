"""The part of PromQL that people and models use, over computed series. Read parser, evaluate, functions."""
