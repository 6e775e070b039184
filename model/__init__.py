"""The simulated serving engine: NumPy only, no user interface."""
