"""The commands of `inakit`, grouped in files by what they import."""
