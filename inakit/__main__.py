"""`python -m inakit` is the command `inakit`."""

from inakit.experiments.cli.main import main

if __name__ == "__main__":
    main()
