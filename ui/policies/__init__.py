"""What the lesson on policies shows: its contestants, their table, pictures and words."""
