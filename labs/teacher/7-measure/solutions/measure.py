"""Lab 7, solved: from the runs of the study to a table, a summary and answers, with Student's t intervals."""

import csv
import math
import re
import statistics
from pathlib import Path

RUNS = Path("results/studies/study/results.parquet")
COLUMNS = ["planner", "gradient_bytes", "seed", "communication_time_s"]
QUANTILES = {9: 2.2622, 14: 2.1448, 19: 2.0930, 29: 2.0452}


def write_table():
    """Write results.csv from the results of `inakit study run study.yml`."""
    from pyarrow import parquet

    with open("results.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in parquet.read_table(RUNS).to_pylist():
            time = row["measured_communication_time_s"]
            writer.writerow([row["planner"], row["gradient_bytes"], row["seed"], f"{time:.12f}"])


def read_table():
    """The times of results.csv: times[size][planner][seed] in seconds."""
    times = {}
    with open("results.csv", newline="") as file:
        for row in csv.DictReader(file):
            of_size = times.setdefault(int(row["gradient_bytes"]), {"aro": {}, "ring": {}})
            of_size[row["planner"]][int(row["seed"])] = float(row["communication_time_s"])
    return dict(sorted(times.items()))


def interval(values):
    """The mean of values and the ends of its 95 % interval: (mean, low, high)."""
    freedom = len(values) - 1
    quantile = QUANTILES.get(freedom, 1.96 + 2.4 / freedom + 3 / freedom**2)
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return mean, mean - half, mean + half


def pairs(of_size):
    """The times of INA and of the ring in runs of the same seed."""
    return [(time, of_size["ring"][seed]) for seed, time in sorted(of_size["aro"].items()) if seed in of_size["ring"]]


def differences(of_size):
    """The ring's time less INA's, seed by seed."""
    return [ring - ina for ina, ring in pairs(of_size)]


def write_summary(times):
    """Write summary.csv, a line for each size."""
    figures = ("aro", "ring", "difference")
    with open("summary.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["gradient_bytes", *(f"{each}_{end}_s" for each in figures for end in ("mean", "low", "high"))])
        for size, of_size in times.items():
            ina, ring = zip(*pairs(of_size), strict=True)
            columns = [*interval(ina), *interval(ring), *interval(differences(of_size))]
            writer.writerow([size, *(f"{value:.8g}" for value in columns)])


def write_answers(times):
    """Fill in answers.yml."""
    ends = {size: interval(differences(of_size))[1:] for size, of_size in times.items()}
    ina = [size for size, (low, _) in ends.items() if low > 0]
    ring = [size for size, (_, high) in ends.items() if high < 0]
    text = Path("answers.yml").read_text()
    text = re.sub("crossover_bytes: .*", f"crossover_bytes: [{max(ina, default=1)}, {min(ring, default=2)}]", text)
    for name, size in (("shortest", min(times)), ("longest", max(times))):
        numbers = interval([ring / ina for ina, ring in pairs(times[size])])
        text = re.sub(f"{name}: .*", f"{name}: [{', '.join(f'{number:.5g}' for number in numbers)}]", text)
    Path("answers.yml").write_text(text)


def main():
    """Table, summary, answers."""
    if RUNS.is_file():
        write_table()
    times = read_table()
    write_summary(times)
    write_answers(times)


if __name__ == "__main__":
    main()
