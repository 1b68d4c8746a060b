"""In-network aggregation against end-host collectives, by real packets."""
