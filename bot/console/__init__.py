"""The console: an incident channel in the browser, and a platform like any other to the rest of the house."""
