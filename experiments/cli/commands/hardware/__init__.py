"""The subcommands of `inakit hardware`, a file each."""
