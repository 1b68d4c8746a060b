"""Lab 7: makes a table, a summary and answers from the runs of your study. Replace the TODOs."""

import csv
from pathlib import Path

RUNS = Path("results/studies/study/results.parquet")
COLUMNS = ["planner", "gradient_bytes", "seed", "communication_time_s"]


def write_table():
    """Write results.csv from the results of `inakit study run study.yml`."""
    from pyarrow import parquet

    with open("results.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in parquet.read_table(RUNS).to_pylist():
            time = row["measured_communication_time_s"]
            writer.writerow([row["planner"], row["gradient_bytes"], row["seed"], time])


def read_table():
    """The times of results.csv: times[size][planner][seed] in seconds."""
    times = {}
    with open("results.csv", newline="") as file:
        for row in csv.DictReader(file):
            of_size = times.setdefault(int(row["gradient_bytes"]), {"aro": {}, "ring": {}})
            of_size[row["planner"]][int(row["seed"])] = float(row["communication_time_s"])
    return times


def interval(values):
    """The mean of values and the ends of its 95 % interval: (mean, low, high)."""
    return 0.0, 0.0, 0.0  # TODO step 4


def pairs(of_size):
    """The times of INA and of the ring in runs of the same seed."""
    return [(time, of_size["ring"][seed]) for seed, time in sorted(of_size["aro"].items()) if seed in of_size["ring"]]


def write_summary(times):
    """Write summary.csv, a line for each size."""
    # TODO step 4: the intervals of INA, of the ring, and of the differences of pairs (the ring's time less INA's)


def main():
    """Write the table and the summary; print the answers for answers.yml."""
    if RUNS.is_file():
        write_table()
    write_summary(read_table())
    # TODO steps 5 and 6: print the crossover and the speedups


if __name__ == "__main__":
    main()
