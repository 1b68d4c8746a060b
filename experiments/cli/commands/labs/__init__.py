"""The subcommands of `inakit labs`, a file each."""
