"""How far the simulator is from real packets: the same runs in worlds 1 and 2, and their differences."""
