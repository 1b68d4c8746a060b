"""P4INC-AOI's jobs: the published distributions, their placement, and traces in CSV."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from p4inc_aoi_cases import center

from inakit.planner.methods.p4inc_aoi.job_traces import (
    FACEBOOK,
    PHILLY_WORKERS,
    UNFINISHED,
    UPDATE_BYTES_PER_S,
    WITHOUT_GRADIENTS,
    JobRequest,
    TraceReading,
    mapreduce,
    place,
    read_trace,
    training,
)
from inakit.planner.methods.p4inc_aoi.optical_system import MAPREDUCE, Scheduling
from inakit.topo.errors import InputError

WIDE = center(units=6, servers=64)


def test_training_jobs_have_the_papers_distributions() -> None:
    found = training(4000, 20.0, np.random.default_rng(0))
    assert {request.workers for request in found} == set(PHILLY_WORKERS)
    assert min(request.gradient_bytes for request in found) >= 102e6 - 4
    assert np.mean([request.gradient_bytes for request in found]) == pytest.approx(325e6, rel=0.02)
    assert found[0].arrival_s == 0.0
    assert found[-1].arrival_s == pytest.approx(4000 / 20, rel=0.1)


def test_mapreduce_jobs_have_the_shape_of_facebooks() -> None:
    """By Varys's table 52, 16, 15 and 17 % of the shuffles are of each class, and nearly all bytes of the last."""
    found = mapreduce(4000, None, np.random.default_rng(0))
    total = np.array([request.workers * request.gradient_bytes for request in found])
    large = np.array([request.workers >= 8 and request.gradient_bytes >= 250e6 - 4 for request in found])
    assert large.mean() == pytest.approx(FACEBOOK[3].share, abs=0.02)
    assert total[large].sum() / total.sum() > 0.95
    assert {request.kind for request in found} == {MAPREDUCE}
    assert {request.arrival_s for request in found} == {0.0}


def test_workers_are_placed_in_few_units_with_servers_for_them() -> None:
    draws = np.random.default_rng(1)
    requests = training(200, 20.0, draws)
    jobs = place(requests, WIDE, draws, free_servers=8)
    Scheduling(WIDE, jobs)  # checks that they fit
    assert [sum(job.workers.values()) for job in jobs] == [request.workers for request in requests]
    assert max(len(job.workers) for job in jobs) == 2
    assert [job.arrival for job in jobs] == [int(request.arrival_s) for request in requests]


def test_a_trace_is_read_in_the_order_of_arrival(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,workers,gradient_bytes,kind\n2.5,4,1000,training\n0.5,2,2000,mapreduce\n")
    found = read_trace(path)
    assert found.requests == (JobRequest(0.5, 2, 2000, kind=MAPREDUCE), JobRequest(2.5, 4, 1000))
    assert read_trace(path, TraceReading(jobs=1)).requests == found.requests[:1]


HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,ua,vca,8,32,1,COMPLETED,2020-06-09 18:41:30,2020-06-09 18:41:40,2020-06-09 18:42:40,60,10
5,ub,vca,4,16,1,FAILED,2020-06-09 18:41:00,2020-06-09 18:41:00,2020-06-09 18:41:10,10,0
6,ub,vca,1,4,1,FAILED,2020-06-09 18:41:00,2020-06-09 18:41:00,2020-06-09 18:41:10,10,0
"""
PHILLY = """\
jobid,status,vc,user,submitted_time,start_time,end_time,gpus
a_1,Pass,v,u,2017-10-07 01:11:30,2017-10-07 01:12:00,2017-10-07 01:13:00,8
a_0,Killed,v,u,2017-10-07 01:11:00,2017-10-07 01:11:00,2017-10-07 01:11:10,4
a_2,Killed,v,u,2017-10-07 01:12:00,2017-10-07 01:12:10,None,4
a_3,Pass,v,u,2017-10-07 01:12:00,2017-10-07 01:12:10,2017-10-07 01:12:20,1
"""
PAI = """\
job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
big,ps,2.0,Terminated,1030.0,1090.0,600.0,29.3,,MISC
big,worker,8.0,Terminated,1030.0,1090.0,600.0,29.3,50.0,V100
small,worker,2.0,Terminated,1000.0,1010.0,600.0,29.3,200.0,V100
waits,worker,2.0,Waiting,,,600.0,29.3,100.0,V100
lone,tensorflow,1.0,Terminated,1000.0,1010.0,600.0,29.3,100.0,T4
"""


def attempt(start: str, end: str, *gpus: int) -> str:
    """An attempt of a job of Philly's log, with so many GPUs on each of its servers."""
    servers = [{"ip": f"m{n}", "gpus": [f"gpu{gpu}" for gpu in range(count)]} for n, count in enumerate(gpus)]
    return json.dumps({"start_time": start, "end_time": end, "detail": servers}, indent=4)


def log(*jobs: tuple[str, str, list[str]]) -> str:
    """Philly's log: jobs with their names, the time of submission, and their attempts."""
    texts = [
        f'''{{"status": "Pass", "vc": "v", "jobid": "{name}", "attempts": [{", ".join(attempts)}],
        "submitted_time": {submitted}, "user": "u"}}'''
        for name, submitted, attempts in jobs
    ]
    return "[" + ",\n".join(texts) + "]\n"


PHILLY_LOG = log(
    ("a_1", '"2017-10-07 01:11:30"',
     [attempt("2017-10-07 01:12:00", "2017-10-07 01:12:20", 4, 4), attempt("2017-10-07 02:00:00", "None", 8),
      attempt("2017-10-07 01:13:00", "2017-10-07 01:13:40", 8)]),
    ("a_0", '"2017-10-07 01:11:00"', [attempt("2017-10-07 01:11:00", "2017-10-07 01:11:10", 4)]),
    ("a_2", '"2017-10-07 01:12:00"', []),
    ("a_3", '"2017-10-07 01:12:00"', [attempt("2017-10-07 01:12:10", "2017-10-07 01:12:20", 1)]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"), [("Helios", HELIOS), ("Philly", PHILLY), ("PAI", PAI), ("Philly", PHILLY_LOG)]
)
def test_the_traces_of_the_field_say_when_jobs_came_with_how_many_gpus(name: str, text: str, tmp_path: Path) -> None:
    """Each excerpt has one job of 4 GPUs and 10 s and, 30 s later, one of 8 GPUs and 60 s; others send no gradients."""
    path = tmp_path / "trace.csv"
    path.write_text(text)
    found = read_trace(path, TraceReading(gradient_bytes=4_000_000, compute_s=0.5))
    first, second = found.requests
    assert found.name == name
    assert first == JobRequest(0.0, 4, 4_000_000, 4_000_000 / UPDATE_BYTES_PER_S, 20, 0.5)
    assert (second.arrival_s, second.workers, second.iterations) == (30.0, 8, 120)
    assert found.left_out[WITHOUT_GRADIENTS] == 1
    assert found.left_out[UNFINISHED] == (name != "Helios")
    assert [job.iterations for job in read_trace(path, TraceReading(iterations=3)).requests] == [3, 3]


OWN = "arrival_s,workers,gradient_bytes\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrival_s,workers\n1,2\n", "line 1: columns arrival_s, workers: the kit's trace lacks gradient_bytes"),
        ("arrival_s,workers,gradient_bytes,colour\n1,2,3,4\n", "line 1: column 'colour' is not a column"),
        (
            "arrival_s,workers,gradient_bytes,workers\n1,2,3,4\n",
            "line 1: column 'workers' is there 2 times: remove all but one",
        ),
        (OWN + "0,2,4\n0,two,4\n", "line 3, column workers: 'two': a whole number from 1"),
        (OWN + "0,0,4\n", "line 2, column workers: '0'"),
        (OWN + "nan,2,4\n", "line 2, column arrival_s: 'nan': a number from 0"),
        (OWN + "-1,2,4\n", "line 2, column arrival_s: '-1'"),
        (OWN + "0,2,1e400\n", "column gradient_bytes: '1e400'"),
        (OWN + f"0,2,{'9' * 5000}\n", "column gradient_bytes: '9{40}…'"),
        (OWN + "0,2.5,4\n", "column workers: '2.5'"),
        (OWN + "0,2\n", "line 2: 2 values: 3, one for each column"),
        (OWN + "0,2,4,5\n", "line 2: 4 values"),
        (OWN + '0,2,"4\n', "line 2: unexpected end of data"),
        (OWN + f"0,2,{'x' * 200_000}\n", "column gradient_bytes: 'x{40}…'"),
        (OWN + f"0,2,{'x' * 2_000_000}\n", "line 2: field larger than field limit"),
        (OWN, "no job"),
        (OWN.replace(",", ";"), "it is one; commas are expected"),
        (HELIOS.replace("user", "vc"), "line 1: column 'vc' is there 2 times: remove all but one"),
        ("", "line 1: columns .none."),
        (HELIOS.replace("5,ub", "7,ub"), "line 3, column job_id: '7': it is in line 2 too"),
        (HELIOS.replace("18:41:00,2020", "18:61:00,2020"), "line 3, column submit_time: '2020-06-09 18:61:00': a time"),
        (PHILLY.replace("01:13:00", "01:10:00"), "line 2, column end_time: .*after start_time"),
        (PAI.replace("2.0,T", "x,T"), "line 2, column inst_num: 'x'"),
        ("{}", "is a JSON list of jobs"),
        ("[]", "no job"),
        (log(("a", '"2017-10-07"', [attempt("", "", 4).replace("[", '"').replace("]", '"')])), "not JSON"),
        (PHILLY_LOG.replace("[]", '"none"'), r"line \d\d: this job is of another form"),
        ("[{]", "not JSON: .*line 1 column 3"),
        ('[\n{"jobid": "a_0"},\n 5]', "line 2: this job lacks 'attempts'.*\n.*line 3: this job is of another form"),
        (PHILLY_LOG.replace('"detail"', '"details"', 1), "line 1: this job lacks 'detail'"),
        (PHILLY_LOG.replace("01:12:20", "00:12:20", 1), "line 1, column end_time: .*after start_time"),
        (PHILLY_LOG.replace('"a_0"', '"a_1"'), r"line \d\d, column jobid: 'a_1': it is in line 1 too"),
        (PHILLY_LOG.replace('"2017-10-07 01:11:30"', "[]"), r"line 1, column submitted_time: '\[\]': a time such as"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_trace(path)


def test_every_fault_of_a_trace_has_a_line_up_to_a_number(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(OWN + "0,x,y\n" + "0,z,4\n" * 30)
    with pytest.raises(InputError) as refused:
        read_trace(path)
    lines = str(refused.value).splitlines()
    assert [lines[0][-100:].split(": ")[0].split(", ")[-1], len(lines), lines[-1]] == [
        "column workers", 21, "… and 12 more faults",
    ]  # fmt: skip
    assert "line 2, column gradient_bytes" in lines[1]


def test_a_time_with_an_offset_is_that_of_its_zone(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(HELIOS.replace("18:41:30,2020", "20:41:30+02:00,2020"))
    assert [request.arrival_s for request in read_trace(path).requests] == [0.0, 30.0]


def test_faults_are_listed_in_the_order_of_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(OWN + "0,x,4\n0,2\n")
    with pytest.raises(InputError) as refused:
        read_trace(path)
    assert [line.split(" line ")[1][0] for line in str(refused.value).splitlines()] == ["2", "3"]


@pytest.mark.parametrize(
    "text", [OWN.replace("\n", "\r") + "0,2,4\r1,3,8\r", "\ufeff" + OWN + "0,2,4\r\n\r\n1,3,8\r\n"]
)
def test_line_ends_of_old_macs_and_of_windows_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(text.encode())
    assert [request.workers for request in read_trace(path).requests] == [2, 3]


def test_a_missing_trace_and_one_that_is_not_utf8_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trace\.csv"):
        read_trace(tmp_path / "trace.csv")
    (tmp_path / "trace.csv").write_bytes(OWN.encode() + b"0,2,\xff\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_trace(tmp_path / "trace.csv")


def test_all_jobs_that_do_not_fit_the_data_centre_are_named() -> None:
    requests = [JobRequest(0.0, 1000, 4), JobRequest(1.0, 2, 4), JobRequest(1e9, 2, 4)]
    with pytest.raises(InputError) as refused:
        place(requests, WIDE, np.random.default_rng(0), free_servers=8)
    first, second = str(refused.value).splitlines()
    assert first.startswith("job 1, which arrives at 0 s: 1000 workers, constraint 'servers': at most 384")
    assert second.startswith("job 3, which arrives at 1e+09 s: expected before slot 1,000,000")


def test_a_ps_has_a_unit_with_a_server_for_it() -> None:
    """The PS of a job whose workers have all servers of a unit is in the other one."""
    full = center(units=2, servers=4)
    jobs = place([JobRequest(0.0, 4, 4)] * 20, full, np.random.default_rng(0), free_servers=None)
    assert all(job.home is not None and job.server != job.home for job in jobs)
    Scheduling(full, jobs)
