"""Table entries in the formats that hardware takes, what a switch dumps, and how the two differ."""
