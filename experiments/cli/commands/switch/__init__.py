"""The subcommands of `inakit switch`, a file each."""
