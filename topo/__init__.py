"""Fabrics: immutable data, their files and generators, pictures, and the networks built from them."""
