"""Table entries in the formats that hardware takes, dumps of switches, and the differences of the two."""
