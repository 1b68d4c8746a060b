"""The functions behind `import inakit as ina`: each takes plain Python values and calls what the command line calls."""
