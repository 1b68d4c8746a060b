"""The command line, whole runs, and their reports."""

import os

# NumPy's BLAS reads this when it is loaded. Its threads would spin on the processors of the emulated switches.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
