"""The functions behind `import inakit as ina`: they take plain Python values and share the command line's code."""
