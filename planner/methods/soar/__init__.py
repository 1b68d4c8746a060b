"""SOAR (CoNEXT 2021): which k switches of a tree aggregate, so that links are busy for the shortest time in sum."""
