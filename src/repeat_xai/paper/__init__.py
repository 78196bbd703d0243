"""The paper as data: its tables and figures, with what it prints, and the readings of it."""
