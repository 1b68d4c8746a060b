"use strict";
// Schedules of jobs and optical circuits: figures of all schedulers, a Gantt chart of one, and its jobs.

const JOBS_AT_ONCE = 40;
const CIRCUITS_AT_ONCE = 40;
const GANTT_PX = 640;

/** All sections of a page of schedules. */
function scheduleSections(parent, schedule) {
  schedule.schedulers.filter((each) => each.verdict !== null).forEach((each) => verdictBox(parent, {
    verdict: each.verdict, reasons: [],
    meaning: `${each.name} by packets: ${each.exact ? "every sum is exact" : "sums are not exact"}; measured JCT is ` +
      `${(each.measured_mean_jct_s / each.mean_jct_s).toFixed(4)} times the planned one.`,
  }));
  if (schedule.notes.length) {
    const list = add(parent, "ul", {class: "notes"});
    schedule.notes.forEach((note) => add(list, "li", {}, note));
  }
  schedulersTable(parent, schedule);
  ganttSection(parent, schedule);
  scheduledJobs(parent, schedule);
}

/** The figures of every scheduler. */
function schedulersTable(parent, schedule) {
  const made = section(parent, "figures", "Schedulers",
    `${countText(schedule.schedulers[0].jobs.length)} jobs on ${countText(Object.keys(schedule.units).length)} units with ` +
    `${countText(d3.sum(Object.values(schedule.units)))} GPUs; slots of ${timeText(schedule.slot_s)}, ports of ${rateText(schedule.port_bps)}. ` +
    "The JCT goes from a job's arrival to its end; CT-BTI is the end of the last job.");
  const columns = [
    {name: "scheduler", value: (each) => each.name, color: (each) => each.color},
    {name: "mean JCT", value: (each) => each.mean_jct_s, text: (each) => timeText(each.mean_jct_s)},
    {name: "mean wait", value: (each) => each.mean_wait_s, text: (each) => timeText(each.mean_wait_s)},
    {name: "CT-BTI", value: (each) => each.ct_bti_s, text: (each) => timeText(each.ct_bti_s)},
    {name: "new connections", value: (each) => each.connections, text: (each) => countText(each.connections)},
    {name: "jobs with INC", value: (each) => d3.sum(each.jobs, (job) => job.inc !== null), text: (each) => countText(d3.sum(each.jobs, (job) => job.inc !== null))},
  ];
  const measured = [
    {name: "measured JCT", value: (each) => each.measured_mean_jct_s, text: (each) => timeText(each.measured_mean_jct_s)},
    {name: "difference", value: (each) => deviation(each.mean_jct_s, each.measured_mean_jct_s), bySize: true,
      text: (each) => deviationText(deviation(each.mean_jct_s, each.measured_mean_jct_s))},
    {name: "made", value: (each) => each.measured_connections, text: (each) => countText(each.measured_connections)},
  ];
  const ran = schedule.schedulers.some((each) => each.verdict !== null);
  sortedTable(made, {label: "schedulers", rows: schedule.schedulers, first: null, filter: false, columns: ran ? [...columns, ...measured] : columns});
}

/** The bars of a job: its wait, and its time with or without INC. */
function jobBars(job) {
  const where = Object.entries(job.workers).map(([unit, count]) => `${count} in ${unit}`).join(", ");
  const summed = job.inc === null ? "no INC" : `INC in ${job.inc}`;
  const bars = [
    {from: job.arrival_s, until: job.start_s, kind: "waiting", text: `waits ${timeText(job.start_s - job.arrival_s)}`},
    {from: job.start_s, until: job.end_s, kind: job.inc === null ? "unsummed" : "summed",
      text: `${timeText(job.end_s - job.start_s)}, workers: ${where}, PS in ${job.server}, ${summed}, at most ${rateText(job.rate_bps)} a worker`},
  ];
  return {name: `job ${job.job}`, bars: bars.filter((bar) => bar.until > bar.from)};
}

/** The bars of the circuits between two units: dark, carrying and idle. */
function circuitBars(name, circuits) {
  return {name, bars: circuits.flatMap((each) => {
    const lit = Math.min(each.until_s, each.from_s + each.dark_s);
    const ports = counting(each.ports, "connection");
    return [
      {from: each.from_s, until: lit, kind: "dark", text: "dark, being set up"},
      {from: lit, until: each.until_s, kind: each.used > 0 ? "lit" : "idle-circuit", text: `${ports}, ${shareText(each.used)} used`, short: String(each.ports)},
    ].filter((bar) => bar.until > bar.from);
  })};
}

/** The Gantt chart of one scheduler: some jobs in the order of their arrival, and the circuits during that time. */
function ganttSection(parent, schedule) {
  const made = section(parent, "gantt", "Jobs and circuits over time",
    `A row for each job, ${JOBS_AT_ONCE} at a time, and for each pair of units with circuits while these jobs are in the data centre. ` +
    "The number on a circuit is that of its connections.");
  const view = {scheduler: 0, first: 0};
  const controls = add(made, "div", {class: "controls"});
  const press = schedule.schedulers.length < 2 ? () => {} : choice(controls, "Scheduler",
    schedule.schedulers.map((each, place) => [place, each.name, each.color]), (place) => { view.scheduler = place; draw(); });
  const before = button(controls, "Earlier jobs", () => { view.first -= JOBS_AT_ONCE; draw(); });
  const status = add(controls, "span", {class: "status", role: "status"});
  const after = button(controls, "Later jobs", () => { view.first += JOBS_AT_ONCE; draw(); });
  const legend = add(made, "p", {class: "legend"});
  for (const [kind, name] of [["waiting", "waits"], ["summed", "runs with INC"], ["unsummed", "runs without INC"],
    ["lit", "circuit in use"], ["idle-circuit", "circuit left idle"], ["dark", "circuit being set up"]]) {
    const key = add(legend, "span", {class: "key"});
    add(add(key, "svg", {class: "sample", viewBox: "0 0 18 12", "aria-hidden": "true"}), "rect", {class: kind, x: 1, y: 1, width: 16, height: 10, rx: 2});
    add(key, "span", {}, name);
  }
  const holder = add(made, "div", {class: "timeline scroll", tabindex: 0, role: "region", "aria-label": "jobs and circuits over time"});
  function draw() {
    const scheduler = schedule.schedulers[view.scheduler];
    const jobs = [...scheduler.jobs].sort((one, other) => one.arrival_s - other.arrival_s || one.job - other.job);
    view.first = Math.max(0, Math.min(view.first, JOBS_AT_ONCE * Math.floor((jobs.length - 1) / JOBS_AT_ONCE)));
    const shown = jobs.slice(view.first, view.first + JOBS_AT_ONCE);
    press(view.scheduler);
    before.property("disabled", view.first === 0);
    after.property("disabled", view.first + JOBS_AT_ONCE >= jobs.length);
    status.text(`${countText(view.first + 1)} to ${countText(view.first + shown.length)} of ${countText(jobs.length)} jobs`);
    drawGantt(holder, scheduler, shown);
  }
  draw();
}

/** Draw the rows of these jobs, and of the circuits in their time. */
function drawGantt(holder, scheduler, jobs) {
  holder.text("");
  const span = [d3.min(jobs, (job) => job.arrival_s), d3.max(jobs, (job) => job.end_s)];
  const inTime = scheduler.circuits.filter((each) => each.until_s > span[0] && each.from_s < span[1]);
  const pairs = d3.nest().key((each) => `${each.a} – ${each.b}`).sortKeys(d3.ascending).entries(inTime);
  const busy = pairs.filter(({values}) => values.some((each) => each.used > 0));
  const circuits = busy.slice(0, CIRCUITS_AT_ONCE).map(({key, values}) => circuitBars(key, values));
  const rows = [...jobs.map(jobBars), ...circuits];
  const width = Math.max(GANTT_PX, holder.node().clientWidth);
  const gap = circuits.length ? 12 : 0;
  const height = 14 + rows.length * ROW_PX + gap + 30;
  const svg = add(holder, "svg", {class: "gantt", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${jobs.length} jobs and the circuits of ${circuits.length} pairs of units, from ${timeText(span[0])} to ${timeText(span[1])}`});
  const x = linear(span, [nameRoom(rows), width - 12]).clamp(true);
  bottomAxis(svg, x, height - 28, (at) => `${countText(at)} s`, height - 40);
  rows.forEach((row, place) => {
    const bars = row.bars.filter((bar) => bar.until > span[0] && bar.from < span[1]);
    drawRow(svg, {...row, bars}, 10 + place * ROW_PX + (place < jobs.length ? 0 : gap), x);
  });
  exportButtons(holder, "jobs and circuits", () => [svg.node()], () => barRows(rows));
  if (busy.length > circuits.length) {
    add(holder, "p", {class: "about"}, `${busy.length - circuits.length} more pairs of units are in circuits.csv.`);
  }
}

/** The jobs of all schedulers. */
function scheduledJobs(parent, schedule) {
  const made = section(parent, "jobs", "Jobs", "Click on a heading to sort by it.");
  const rows = schedule.schedulers.flatMap((each) => each.jobs.map((job) => ({each, job})));
  const measured = {name: "measured JCT", value: ({job}) => job.measured_jct_s, text: ({job}) => timeText(job.measured_jct_s)};
  sortedTable(made, {
    label: "jobs", rows, first: null,
    columns: [
      {name: "job", value: ({job}) => job.job, text: ({job}) => String(job.job)},
      {name: "scheduler", value: ({each}) => each.name, color: ({each}) => each.color},
      {name: "workers", value: ({job}) => Object.entries(job.workers).map(([unit, count]) => `${unit}: ${count}`).join(", ")},
      {name: "PS", value: ({job}) => job.server},
      {name: "INC", value: ({job}) => job.inc || NOTHING},
      {name: "arrival", value: ({job}) => job.arrival_s, text: ({job}) => timeText(job.arrival_s)},
      {name: "wait", value: ({job}) => job.start_s - job.arrival_s, text: ({job}) => timeText(job.start_s - job.arrival_s)},
      {name: "JCT", value: ({job}) => job.jct_s, text: ({job}) => timeText(job.jct_s)},
      ...(rows.some(({job}) => job.measured_jct_s !== null) ? [measured] : []),
      {name: "rate", value: ({job}) => job.rate_bps, text: ({job}) => rateText(job.rate_bps)},
    ],
  });
}
