"""From emulation to hardware: plans handed over, switches compared with them, networks validated on paper."""
