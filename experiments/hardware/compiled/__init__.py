"""What the compiler of a chip says that a P4 program takes."""
