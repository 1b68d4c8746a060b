"use strict";
// The axis of time: iterations, faults and circuits as bars, and the slider.

const ROW_PX = 20;
const NAME_PX = 170;
const NAME_LETTER_PX = 6.2;
const LEAST_BARS_PX = 210;
const MOST_ROWS = 40;

/** The time slider, or a note if the run has no series. */
function timeSlider(parent, run) {
  const field = add(parent, "div", {class: "slider"});
  whenever(["planner", "run"], () => {
    const starts = run.planners[state.planner].series.starts_s;
    field.text("");
    if (!starts.length) {
      add(field, "p", {class: "about"}, "This run has no series over time; the drawing shows means of the whole run.");
      return;
    }
    const label = add(field, "label", {class: "field wide"});
    add(label, "span", {class: "label"}, "Time");
    const input = add(label, "input", {type: "range", min: 0, max: starts.length - 1, step: 1, "aria-label": "time of the drawing"});
    const told = add(field, "output", {class: "status"});
    input.on("input", function () { choose({at: +this.value}); });
    button(field, "Whole run", () => choose({at: null}));
    whenever(["at"], () => {
      if (!field.node().contains(input.node())) return;
      const text = state.at === null ? "mean of the whole run" : `from ${timeText(starts[state.at], endOf(run.planners[state.planner]))}`;
      input.property("value", state.at === null ? 0 : state.at).attr("aria-valuetext", text);
      told.text(text);
    });
  });
}

/** The rows of the timeline: {name, bars}, each bar {from, until, kind, text}. */
function timelineRows(planner) {
  const rows = [];
  for (const job of planner.jobs) {
    const own = planner.iterations.filter((each) => each.job === job.number && each.started_s !== null);
    const bars = own.map((each) => ({
      from: each.started_s, until: each.started_s + each.time_s, kind: "iteration",
      text: `iteration ${each.number}: ${timeText(each.time_s)}`, short: String(each.number),
    }));
    if (bars.length) rows.push({name: `job ${job.number}`, bars, act: () => choose({selected: {kind: "job", id: job.number}})});
  }
  for (const event of planner.events) {
    const until = event.lasting_s === null ? endOf(planner) : event.at_s + event.lasting_s;
    const bars = event.at_s === null ? [] : [{from: event.at_s, until, kind: "fault-bar", text: event.text, short: ""}];
    rows.push({name: event.text, bars});
  }
  const circuits = d3.nest().key((each) => each.name).entries(planner.circuits);
  for (const {key, values} of circuits) {
    rows.push({name: key, bars: values.flatMap((each) => [
      {from: each.from_s, until: each.lit_s, kind: "dark", text: "dark, being set up", short: ""},
      {from: each.lit_s, until: each.until_s, kind: "lit", text: "lit", short: ""},
    ].filter((bar) => bar.until > bar.from))});
  }
  return rows;
}

/** Iterations, faults and circuits on one axis, and the workers' rates and queues below it. */
function timelineSection(parent, run) {
  const made = section(parent, "time", "Over time",
    "Iterations of jobs, faults and circuits. Click on the axis to show the drawing at that time.");
  const holder = add(made, "div", {class: "timeline scroll", tabindex: 0, role: "region", "aria-label": "the axis of time"});
  const charts = add(made, "div", {class: "charts"});
  whenever(["at"], () => moveCursors(run.planners[state.planner]));
  whenever(["planner", "run", "theme"], () => {
    const planner = run.planners[state.planner];
    holder.text("");
    charts.text("");
    drawTimeline(holder, planner);
    drawOverviews(charts, run, planner);
  });
}

/** The room for the names of rows. */
function nameRoom(rows) {
  return Math.min(NAME_PX, 14 + NAME_LETTER_PX * d3.max(rows, (row) => row.name.length));
}

/** Draw the rows and the axis. */
function drawTimeline(holder, planner) {
  const rows = timelineRows(planner);
  if (!rows.length) {
    add(holder, "p", {class: "about"}, "This run has no data over time.");
    return;
  }
  const shown = rows.slice(0, MOST_ROWS);
  const names = nameRoom(shown);
  const width = Math.max(names + LEAST_BARS_PX, holder.node().clientWidth);
  const height = 14 + shown.length * ROW_PX + 30;
  const told = rows.map((row) => `${row.name}: ${row.bars.map((bar) => bar.text).join(", ") || "no time known"}`).slice(0, 12).join("; ");
  const svg = add(holder, "svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Axis of time. ${told}`});
  svg.style("min-width", `${names + LEAST_BARS_PX}px`);
  const x = linear([0, endOf(planner) || 1], [names, width - 12]);
  bottomAxis(svg, x, height - 28, (at) => axisTime(at, x), height - 40);
  shown.forEach((row, place) => drawRow(svg, row, 10 + place * ROW_PX, x));
  add(svg, "line", {class: "cursor", y1: 4, y2: height - 28}).datum({x});
  moveCursors(planner);
  svg.on("click", function () {
    const place = d3.bisectRight(planner.series.starts_s, x.invert(d3.mouse(this)[0])) - 1;
    if (place >= 0) choose({at: place});
  });
  exportButtons(holder, "over time", () => [svg.node()], () => barRows(rows));
  if (rows.length > shown.length) add(holder, "p", {class: "about"}, `${rows.length - shown.length} more rows are in trace.json.`);
}

/** The bars of rows, for CSV. */
function barRows(rows) {
  return [["row", "from_s", "until_s", "what"], ...rows.flatMap((row) => row.bars.map((bar) => [row.name, bar.from, bar.until, bar.text]))];
}

/** One row: its name, and its bars, with a short text where it fits. */
function drawRow(svg, row, y, x) {
  const [start] = x.range();
  const most = Math.floor((start - 14) / NAME_LETTER_PX + 0.001);
  const name = row.name.length > most ? `${row.name.slice(0, most - 1)}…` : row.name;
  add(add(svg, "text", {class: "row-name", x: start - 8, y: y + 12}, name), "title", {}, row.name);
  for (const bar of row.bars) {
    const wide = Math.max(1.5, x(bar.until) - x(bar.from) - 0.8);
    const rect = add(svg, "rect", {class: bar.kind, x: x(bar.from), y: y + 1, width: wide, height: ROW_PX - 5, rx: 2});
    add(rect, "title", {}, `${row.name}, ${bar.text}`);
    if (bar.short && wide > 7 * bar.short.length + 6) {
      add(svg, "text", {class: "bar-text", x: x(bar.from) + wide / 2, y: y + 12}, bar.short);
    }
  }
}

/** The workers' rates over time: {starts, rates}, the rates of all workers that send, at each start. */
function ratesOverTime(run, planner) {
  const starts = planner.series.starts_s;
  const begun = planner.iterations.filter((each) => each.started_s !== null);
  const shortest = d3.min(begun, (each) => each.time_s);
  if (begun.length && !(starts.length > 1 && starts[1] - starts[0] < shortest / 4)) {  // by iteration: no finer series is known
    const moments = [...new Set(begun.flatMap((each) => [each.started_s, each.started_s + each.time_s]))].sort(d3.ascending);
    const now = (at) => begun.filter((each) => each.started_s <= at && at < each.started_s + each.time_s);
    return {starts: moments, rates: moments.map((at) => now(at).flatMap((each) => Object.values(each.rates_bps)))};
  }
  const workers = new Set(planner.jobs.flatMap((job) => job.workers));
  const uplinks = allLinks(run, planner).filter((facts) => facts.used && workers.has(facts.from));
  return {starts, rates: starts.map((_, place) => uplinks.map((facts) => (facts.used[place] / 1000) * facts.capacity))};
}

/** The rates of workers and the deepest queues over time. */
function drawOverviews(charts, run, planner) {
  const links = allLinks(run, planner).filter((facts) => facts.used);
  const {starts, rates} = ratesOverTime(run, planner);
  const sorted = rates.map((values) => [...values].sort(d3.ascending));
  const across = (share) => sorted.map((values) => d3.quantile(values, share) || 0);
  if (d3.max(across(1))) {
    lineChart(charts, planner, {
      title: "sending rate of a worker", text: rateText, starts,
      lines: [{name: "fastest", values: across(1), color: "var(--plan)"},
              {name: "median", values: across(0.5), color: "var(--accent)"},
              {name: "slowest", values: across(0), color: "var(--muted)"}],
    });
  }
  const queues = links.filter((facts) => facts.queue).sort((one, other) => other.queue - one.queue).slice(0, 3);
  if (queues.length) {
    lineChart(charts, planner, {
      title: "deepest queues, maximum", text: packetText,
      lines: queues.map((facts, place) => ({
        name: facts.name, color: TREE_COLORS[place],
        values: planner.series.most_waiting[facts.number].map((tenths) => tenths / 10),
      })),
    });
  }
}
