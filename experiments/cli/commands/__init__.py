"""The commands of `inakit`, grouped in files by topic."""
