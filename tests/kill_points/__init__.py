"""Systematic faults at every statement, commit and outside call of a scripted analysis."""
