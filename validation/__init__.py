"""What a formula says beside what the simulation of the same case gives, and why they differ."""
