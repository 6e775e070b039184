"""The parts of the Reference page: formulas, claims, words, devices, models, evidence, sources."""
