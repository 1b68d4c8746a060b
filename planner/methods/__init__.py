"""The planning methods: small ones in a file, those of papers with several parts in a folder."""
