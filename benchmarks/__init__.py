"""Speed of the simulator, by itself and against other simulators; `python -m benchmarks`.

Nothing here is a test: times depend on the machine. What does not is asserted in
`tests/model/test_counts.py`.
"""
