"""From emulation to hardware: exports plans, compares switches with them, validates networks before they are bought."""
