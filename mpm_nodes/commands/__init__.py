"""The subcommands of `mpm-nodes`, one module each: `add` declares the arguments, `run` returns the exit code."""
