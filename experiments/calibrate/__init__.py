"""What this machine carries: found by running plans at rising link rates, kept, and said before later runs."""
