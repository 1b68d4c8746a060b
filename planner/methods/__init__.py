"""The planning methods: a file for a small one, a room for a paper's with all that is the paper's own."""
