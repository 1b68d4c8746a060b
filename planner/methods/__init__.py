"""The planning methods: a file for a small one, a folder for a paper's with everything that belongs to the paper."""
