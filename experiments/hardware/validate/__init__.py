"""`inakit validate`: will a network carry its jobs, also when a link or a switch fails? One verdict, and why."""
