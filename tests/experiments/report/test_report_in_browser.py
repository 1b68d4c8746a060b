"""Reports in Chromium: every view opens, says what was measured, asks nobody for anything, and can be read by all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import shown_runs
from browser import Browser, browsing, missing_for_browser
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.experiments.cli.main import main
from inakit.experiments.report.document import Document
from inakit.experiments.report.write import write_comparison, write_page, write_report
from inakit.experiments.run.printed_report import IN_VIRTUAL_TIME

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(missing_for_browser() is not None, reason=missing_for_browser() or ""),
]

PHONE, DESK = 390, 1280
CUT_LABELS = """() => [...document.querySelectorAll("svg")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  const cut = (box) => box.left < frame.left - 1 || box.right > frame.right + 1;
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return [...svg.querySelectorAll(".axis")].flatMap((axis) => {
    const labels = [...axis.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    const wrong = ([, box], place) => cut(box) || labels.slice(0, place).some(([, other]) => meet(box, other));
    return labels.filter((label, place) => label[1].width && wrong(label, place)).map(([text]) => text);
  });
})"""
"""The labels of axes that their drawings cut off, or that lie on others."""
OTHERS = ((DESK, "dark"), (PHONE, "light"))
"""What axe-core judges in the long form only: it sees a page after its theme was changed."""
MOST_DRAWING_S = 2.0
STUDY = """\
version: 1
name: rates
stays: {world: none, fabric: "leafspine:leaves=4,spines=2,hosts_per_leaf=2", gradient_bytes: 4096, ina: 0.5}
varies:
  - workers: [2, 4]
  - {planner: [atp, lbmm], seed: 0..1}
figures:
  - {x: workers, y: sending_rate_bps}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a VALID run of three planners."""
    return shown_runs.valid(tmp_path_factory.mktemp("valid"))


@pytest.fixture(scope="module")
def two_jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two jobs."""
    return shown_runs.two_jobs(tmp_path_factory.mktemp("two_jobs"))


def nothing_wrong(browser: Browser) -> None:
    """Fails where the page had an error, asked for anything, is too wide, or breaks a rule of axe-core."""
    quiet(browser)
    assert browser.faults() == []


def quiet(browser: Browser) -> None:
    """Fails where the page had an error, asked for anything, or is too wide."""
    assert browser.errors == []
    assert browser.requests == []
    assert browser.overflow() <= 0
    assert browser.run(f"({CUT_LABELS})()") == []


@pytest.mark.parametrize(
    ("width", "theme"),
    [(DESK, "light"), (PHONE, "dark"), *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS)],
)
def test_a_run_is_shown_in_both_themes_at_a_desk_and_on_a_phone(
    browser: Browser, folder: Path, width: int, theme: str
) -> None:
    browser.open(folder / "report.html", width=width, theme=theme)
    assert browser.texts(".verdict-line .verdict")[0] == "✓ VALID"
    assert [each.split(",")[0] for each in browser.texts("nav a")] == [
        *("Planned and measured figures", "Fabric", "Over time", "Links", "Switches", "How it was run"),
    ]
    assert browser.run("document.documentElement.dataset.theme") == theme
    quiet(browser)
    browser.find("#theme").click()
    assert browser.run("document.documentElement.dataset.theme") != theme
    nothing_wrong(browser)


def test_pointing_at_a_link_shows_its_loads_and_its_series(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html")
    browser.point_at(browser.find("path[data-link='0']"))
    browser.wait("document.querySelector('.details h3').textContent.startsWith('link')")
    details = browser.find(".details").text
    assert "planned" in details and "capacity" in details and "Mbit/s" in details
    assert browser.texts(".details figcaption strong") == ["rate", "waiting packets"]
    assert browser.all(".tip:not([hidden])")
    quiet(browser)


def test_a_switch_a_worker_and_a_job_show_their_counters(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html")
    nodes = browser.run("report.runs[0].fabrics[0].nodes.map(n => n.name)")
    browser.find(f"rect[data-node='{nodes.index('edge1_1')}']").click()
    assert {"added", "completed"} <= set(browser.texts(".details .counts dt"))
    assert "fragments held" in browser.texts(".details figcaption strong")
    browser.find(f"rect[data-node='{nodes.index('h1')}']").click()
    assert "worker h1" in browser.find(".details").text
    browser.press("job 1")
    assert "communication time" in browser.find(".details").text
    assert len(browser.all(".details tbody tr")) == 2, "two iterations"
    browser.press("Close")
    assert "Point at a link" in browser.find(".details").text


def test_everything_can_be_reached_by_keys(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html")
    drawing = browser.find("svg.fabric")
    browser.keys(drawing, "\ue014")  # to the right
    assert "h2" in browser.texts(".details h3")[0]
    browser.keys(drawing, "\ue013")  # up
    assert "edge1_1" in browser.texts(".details h3")[0]
    browser.keys(drawing, "l")
    assert browser.texts(".details h3")[0].startswith("link")
    browser.keys(drawing, "\ue007")
    assert browser.all(".mark.chosen")
    browser.keys(drawing, "\ue00c")
    assert not browser.all(".mark.chosen")


def test_the_slider_shows_the_links_at_that_time(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html")
    before = browser.texts("text.load")
    browser.keys(browser.find("input[type=range]"), "\ue010")  # to the end
    assert browser.find(".slider output").text.startswith("from ")
    browser.wait("state.at === report.runs[0].planners[0].series.starts_s.length - 1")
    assert browser.texts("text.load") != before
    browser.press("Whole run")
    assert browser.find(".slider output").text == "mean of the whole run"
    assert browser.texts("text.load") == before


@pytest.mark.parametrize(("width", "theme"), [(DESK, "light"), (PHONE, "dark")])
def test_what_the_parts_of_the_kit_used_is_shown_over_time(
    browser: Browser, folder: Path, tmp_path: Path, width: int, theme: str
) -> None:
    used = shown_runs.with_processors(folder, tmp_path)
    browser.open(used / "report.html", width=width, theme=theme)
    assert "Processors and memory" in browser.texts("nav a")
    assert browser.texts("#processors figcaption strong") == ["processors, of 2", "memory of the kit"]
    assert len(browser.all("#processors rect.stacked")) == 2 * 3 + 2 * 2, "three parts, of which two are of the kit"
    assert browser.texts("#processors tbody th") == ["workers and PS", "simple_switch", "the rest of the machine"]
    assert browser.texts("#processors tbody td") == [
        *("0.74", "1.00", "209.7 MB"),
        *("0.12", "0.25", "52.43 MB"),
        *("0.79", "1.50", "4.295 GB"),
    ]
    nothing_wrong(browser)
    browser.press("lbmm")
    assert "The use was not measured" in browser.find("#processors").text
    quiet(browser)


def test_planners_and_views_of_links_are_chosen(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html")
    for view in ("planned", "deviation", "trees", "measured"):
        browser.press(view)
        assert browser.run("state.show") == view
        assert browser.all("path[data-link]")
    trees = browser.run("report.runs[0].planners.map(p => p.trees[0].links.length)")
    browser.press("lbmm")
    assert browser.run("state.planner") == 2
    assert trees[2] == browser.run("chosenTrees(report.runs[0].planners[2])[0].links.length")
    quiet(browser)


def test_tables_are_sorted_and_filtered(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html")
    links = "#links tbody tr"
    browser.press("a row each")
    off = [abs(float(text.split()[0].replace("−", "-"))) for text in browser.texts(f"{links} td:nth-child(2)")[:20]]
    assert off == sorted(off, reverse=True), "the worst deviation comes first"
    browser.find("#links thead th:first-child button").click()
    names = browser.texts(f"{links} th")
    assert names[0].startswith("agg1_1") and browser.find("#links th[aria-sort]").text.startswith("link")
    browser.find("#links input").send_keys("core1")
    assert all("core1" in name for name in browser.texts(f"{links} th"))
    assert browser.find("#links [role=status]").text.endswith("of 96")
    browser.find("#switches thead th:nth-child(5) button").click()
    assert browser.texts("#switches tbody td:nth-child(5)")[0] == "3"
    browser.find("#switches tbody button").click()
    assert "switch core" in browser.find(".details").text


def test_names_do_not_overlap(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html")
    script = """(() => {
      const boxes = [...document.querySelectorAll('.labels text:not(.sum)')].map(e => e.getBoundingClientRect());
      return boxes.some((a, n) => boxes.slice(n + 1).some(b =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3));
    })()"""
    for width in (DESK, PHONE):
        browser.resize(width)
        browser.wait(f"document.documentElement.clientWidth === {width}")
        assert not browser.run(script), width


def test_it_prints_on_a4(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html", theme="dark")
    printed = browser.pdf()
    assert printed.startswith(b"%PDF")
    assert b"/MediaBox [0 0 594" in printed or b"/MediaBox [0 0 595" in printed
    quiet(browser)


def test_an_overloaded_run_says_why_and_that_it_has_no_results(browser: Browser, tmp_path: Path) -> None:
    browser.open(shown_runs.overloaded(tmp_path) / "report.html")
    assert browser.texts(".verdict-line .verdict")[0] == "▲ OVERLOADED"
    assert IN_VIRTUAL_TIME["OVERLOADED"] in browser.find(".verdict-line").text
    assert "planned were" in browser.find(".reasons").text
    nothing_wrong(browser)


def test_faults_are_on_the_axis_of_time(browser: Browser, tmp_path: Path) -> None:
    browser.open(shown_runs.faulty(tmp_path) / "report.html")
    rows = browser.texts(".timeline .row-name")
    assert [name.split("down")[0] for name in rows][:1] == ["job 1job 1"]
    assert any("down leaf1-spine1" in name for name in rows) and any("pause h" in name for name in rows)
    assert len(browser.all(".timeline .fault-bar")) == 2
    assert "packets again" in browser.find(".notes").text
    nothing_wrong(browser)


def test_circuits_of_a_schedule_are_on_the_axis_of_time(browser: Browser, tmp_path: Path) -> None:
    browser.open(shown_runs.scheduled(tmp_path) / "report.html")
    assert browser.all(".timeline .lit")
    assert "Circuits at" in browser.find("#fabric").text
    assert "aoi" in browser.texts(".labels text")
    quiet(browser)


def test_jobs_are_chosen_and_markup_in_names_stays_text(browser: Browser, two_jobs: Path) -> None:
    browser.open(two_jobs / "report.html")
    assert "job 2" in browser.texts("#summary td")
    browser.find(".controls select").send_keys("job 1")
    browser.wait("state.job === 1")
    assert "(vgg16)" in browser.find(".details").text
    assert shown_runs.MARKUP in browser.find("#about code").text
    assert not browser.all("img")
    assert browser.all("path.faded")
    quiet(browser)


def test_320_switches_are_drawn_soon(browser: Browser, tmp_path: Path) -> None:
    report = write_report(shown_runs.planned_only(tmp_path, 16))
    browser.open(report)
    assert "INCOMPLETE" in browser.texts(".verdict-line .verdict")[0]
    browser.press("planned")
    assert browser.run("report.runs[0].fabrics[0].nodes.filter(n => n.tier).length") == 320
    browser.run("choose({show: 'trees'})")
    spent = min(browser.run("(() => { const t = performance.now(); drawing.draw(); return performance.now() - t; })()")
                for _ in range(3))  # fmt: skip
    assert spent / 1e3 < MOST_DRAWING_S
    quiet(browser)


def test_runs_are_compared(browser: Browser, folder: Path, two_jobs: Path, tmp_path: Path) -> None:
    browser.open(write_comparison([folder, two_jobs], tmp_path / "comparison.html"))
    assert browser.find("h1").text == "2 runs compared"
    assert {"1: aro", "1: atp", "1: lbmm", "2: aro", "2: forest"} <= set(browser.texts("#summary tbody th"))
    browser.press(f"2: {two_jobs.name}")
    assert browser.run("state.run") == 1
    assert browser.all("#fabric select"), "two jobs to choose from"
    nothing_wrong(browser)


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_study_is_shown(
    browser: Browser, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rates.yml").write_text(STUDY)
    for words in (["study", "run", "rates.yml", "--processes", "1"], ["report", "rates.yml"]):
        monkeypatch.setattr("sys.argv", ["inakit", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, capsys.readouterr().err
    browser.open(tmp_path / "results" / "studies" / "rates" / "report.html", width=width)
    assert browser.texts("nav a") == ["Groups", "Paired differences", "All runs"]
    assert len(browser.all("#groups tbody tr")) == 12, "four groups, three figures"
    assert len(browser.all("#groups path.line:not(.halo)")) == 2, "a line for each planner"
    assert len(browser.all("svg.forest")) == 3 and len(browser.all("svg.forest .dot")) == 6, "paired differences"
    assert browser.find("h1").text.startswith("LBMM's sending rate is "), browser.find("h1").text
    assert len(browser.all("#runs tbody tr")) == 8
    nothing_wrong(browser)


def test_schedules_are_shown(browser: Browser, tmp_path: Path) -> None:
    """The starter's twelve jobs under two schedulers; the third job of noINC-FCFS waits."""
    for words in (
        ["schedule", "--starter", str(tmp_path)],
        [
            *("schedule", str(tmp_path / "center.yml"), "--trace", str(tmp_path / "jobs.csv")),
            *("--schedulers", "INC-TW,noINC-FCFS", "--output", str(tmp_path / "out")),
        ],
    ):
        assert not CliRunner().invoke(app, words).exit_code
    browser.open(tmp_path / "out" / "report.html", theme="dark")
    assert browser.texts("nav a") == ["Schedulers", "Jobs and circuits over time", "Jobs"]
    assert len(browser.all("#gantt rect.summed")) == 1 + 12, "the legend's, and one for each job"
    browser.press("noINC-FCFS")
    assert len(browser.all("#gantt rect.unsummed")) == 1 + 12
    assert len(browser.all("#gantt rect.waiting")) > 1
    assert len(browser.all("#gantt rect.lit")) > 1
    assert len(browser.all("#jobs tbody tr")) == 2 * 12
    assert {"0 s"} <= {*browser.texts("#jobs td")} and "0 ns" not in browser.find("#jobs").text
    nothing_wrong(browser)


def test_a_site_is_shown(browser: Browser, tmp_path: Path) -> None:
    def failure(name: str, kept: float, lost: dict[int, str]) -> dict[str, Any]:
        jobs = {"1": kept, "2": 1.0}
        given: dict[str, Any] = {
            "name": name,
            "kind": "switch",
            "plan": "planned anew",
            "error": None,
            "lost": lost,
            "kept": jobs,
        }
        return given | {"rates_bps": {job: 1e9 * share for job, share in jobs.items() if int(job) not in lost}}

    need = {"kind": "slots", "where": "leaf1, pipeline 0", "share": 0.5, "needed": "8,192", "has": "16,384"}
    run: dict[str, Any] = {
        "verdict": "VALID",
        "planned_bps": {"1": 1e9, "2": 1e9},
        "measured_bps": {"1": 0.99e9, "2": 1e9},
    }
    planner: dict[str, Any] = {"planner": "atp", "color": "#0072B2", "failed": None, "said": "", "emulated": None}
    planner |= {"rates_bps": {"1": 1e9, "2": 1e9}, "virtual": {"": run}}
    planner |= {"fits": [{"chip": "tofino1", "switches": 3, "fits": True, "needs": [need]}]}
    planner |= {"failures": [failure("<spine1>", 0.4, {}), failure("leaf1", 0.0, {1: "cut off: h1 (leaf1)"})]}
    reasons = {"atp": ["switch <spine1> fails: job 1 keeps 40% of its rate, 50% is asked for"]}
    site: dict[str, Any] = {
        "site": "small",
        "verdict": "DOES NOT HOLD",
        "holds_with": [],
        "reasons": reasons,
        "switches": 3,
    }
    site |= {"links": 6, "left_out": ["no emulation"], "planners": [planner]}
    site |= {"jobs": [{"number": 1, "workers": 2}, {"number": 2, "workers": 3}]}
    browser.open(write_page(Document("Site small", "inakit", site=site), tmp_path / "report.html"))
    assert browser.texts(".verdict-line .verdict") == ["✕ DOES NOT HOLD"]
    assert browser.texts(".reasons li")[0] == f"atp: {reasons['atp'][0]}"
    assert browser.texts("#jobs tbody tr:first-child td") == [
        *("atp", "2", "1.000 Gbit/s", "400.0 Mbit/s", "40.0 %", "<spine1>", "leaf1")
    ]
    assert len(browser.all("#failures tbody tr")) == 2
    assert browser.texts("#fits tbody td")[-3:] == ["8,192", "16,384", "50.0 %"]
    assert len(browser.all("#runs tbody tr")) == 2
    nothing_wrong(browser)


def test_a_page_that_cannot_be_unpacked_says_so(browser: Browser, folder: Path, tmp_path: Path) -> None:
    whole = (folder / "report.html").read_text()
    start = whole.index('id="data">') + len('id="data">')
    broken = tmp_path / "broken.html"
    broken.write_text(whole[:start] + whole[start + 4000 :])
    browser.driver.get(broken.as_uri())
    browser.wait("document.querySelector('[role=alert]') !== null")
    assert browser.find("[role=alert]").text.startswith("The report cannot be shown")


def test_every_chart_can_be_saved_with_its_data(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html", width=DESK)
    charts = browser.all("figure.chart")
    assert charts and len(browser.all("figure.chart > .exports > button")) == 2 * len(charts)
    labels = browser.run("[...document.querySelectorAll('.exports button')].map(e => e.ariaLabel)")
    assert {"save fabric as SVG", "save fabric as CSV", "save over time as SVG", "save links as CSV"} <= set(labels)
    root = ElementTree.fromstring(browser.run("svgText(document.querySelector('figure.chart svg'))"))
    drawn = [each for each in root.iter() if each.tag.endswith("path") and "line" in each.get("class", "")]
    assert drawn and all((each.get("stroke") or "").startswith("rgb") for each in drawn)
    assert browser.run("csvText([['a', 'b'], ['x, y', 'say \"so\"']])") == 'a,b\n"x, y","say ""so"""\n'
    links = browser.run("linkRows(report.runs[0])")
    assert links[0][:2] == ["link", "planned_bps"] and len(links) == 97


def test_lines_and_links_that_are_alike_are_one(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html", width=DESK)
    assert browser.texts("#time figcaption .key") == ["fastest, median, slowest"]
    rows = browser.texts("#links tbody th")
    assert rows[0].startswith("56 links, such as ") and len(rows) < 10
    browser.press("a row each")
    assert len(browser.texts("#links tbody th")) == 60
    assert browser.run("document.querySelector('#links .table-box .scroll').scrollWidth") <= browser.run(
        "document.querySelector('#links .table-box .scroll').clientWidth"
    )


def test_a_run_without_series_has_its_rates_by_iteration(browser: Browser, folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare)
    for file in bare.rglob("*_series.csv*"):
        file.unlink()
    write_report(bare)
    browser.open(bare / "report.html", width=DESK)
    assert browser.texts("#time figure strong") == ["sending rate of a worker"]
    begun = browser.run("ratesOverTime(report.runs[0], report.runs[0].planners[0])")
    assert len(begun["starts"]) == 3 and [len(each) for each in begun["rates"]] == [15, 15, 0]
    assert browser.run("share({measured: 1006, capacity: 1000})") == 1


def test_text_in_a_chart_has_the_size_of_text(browser: Browser, folder: Path) -> None:
    browser.open(folder / "report.html", width=DESK)
    scale = browser.run("(e => e.clientWidth / e.viewBox.baseVal.width)(document.querySelector('#time figure svg'))")
    assert 0.9 < scale < 1.1
