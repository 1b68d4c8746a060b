"""From emulation to hardware: plans handed over, switches compared with their plan, networks judged before they are."""
