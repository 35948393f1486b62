"""The screen of decisions: at the speed of three cameras, and back in time."""

CASES = []
