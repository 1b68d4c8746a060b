"""The subcommands of `inakit study`, a file each."""
