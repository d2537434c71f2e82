"""The rehearsal model: rules instead of a language model, behind the same port, so that no key is needed.

Read in this order: transcript (what was said and done), findings (result text to facts), checks (what can be
asked), picture and origin (what the facts say together), hypotheses, steering, planning, answer, model.
"""
