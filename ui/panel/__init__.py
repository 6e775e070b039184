"""The scenario panel: settings with their codes in links, the scenario they make, and controls."""
