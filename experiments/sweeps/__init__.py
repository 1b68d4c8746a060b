"""Many trials by joblib, on this machine or a cluster: what is finished is kept, and is not run again."""
