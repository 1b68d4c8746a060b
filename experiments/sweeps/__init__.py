"""Many trials by joblib, on this machine or a cluster: results are kept, and finished trials are not run again."""
