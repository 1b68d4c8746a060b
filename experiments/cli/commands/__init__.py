"""The commands of `inakit`, a file for each."""
