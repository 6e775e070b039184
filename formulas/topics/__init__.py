"""One module a topic; each registers the builders of its formulas."""
