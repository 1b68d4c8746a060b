"use strict";
// The verdict with its reasons, and planned and measured figures.

/** One line for the reasons of a kind, which differ only in names, numbers and their units. */
function grouped(reasons) {
  const kinds = new Map();
  for (const reason of reasons) {
    const kind = reason.replace(/'[^']*'|\S*\d\S*( [kMGmµn]?(bit\/s|B|s)\b)?/g, "").replace(/\s+/g, " ");
    kinds.set(kind, [...(kinds.get(kind) || []), reason]);
  }
  return [...kinds.values()];
}

/** The verdict of a run, its meaning, and its reasons. */
function verdictBox(parent, run) {
  const box = add(parent, "div", {class: `verdict-box ${GOOD_VERDICTS.includes(run.verdict) ? "good" : "bad"}`});
  const line = add(box, "p", {class: "verdict-line"});
  verdictMark(line, run.verdict);
  add(line, "span", {}, run.meaning);
  if (!run.reasons.length) return;
  const list = add(box, "ul", {class: "reasons"});
  for (const [first, ...others] of grouped(run.reasons)) {
    const item = add(list, "li", {}, first);
    if (!others.length) continue;
    const more = add(item, "details");
    add(more, "summary", {}, `${others.length} more like this`);
    const rest = add(more, "ul");
    others.forEach((reason) => add(rest, "li", {}, reason));
  }
}

/** A planner's figure: of all jobs together, or of one job. */
function figureOf(planner, name, job = null) {
  return planner.figures.find((each) => each.name === name && each.job === job) || {planned: null, measured: null};
}

/** Bars of several planners' measured figures, with a mark at each planned figure. */
function figureCard(parent, name, planners) {
  const {name: title, text} = FIGURES[name];
  const found = planners.map(({label, planner}) => ({label, planner, ...figureOf(planner, name)}));
  if (found.every((each) => each.planned === null && each.measured === null)) return;
  const card = add(parent, "div", {class: "card"});
  add(card, "h3", {}, title);
  const most = d3.max(found, (each) => Math.max(each.planned || 0, each.measured || 0)) || 1;
  for (const each of found) {
    const row = add(card, "div", {class: "bar-row"});
    add(row, "span", {class: "bar-name"}, each.label);
    const track = add(row, "span", {class: "track", "aria-hidden": "true"});
    add(track, "span", {class: "bar"}).style("width", `${(100 * (each.measured || 0)) / most}%`).style("background", each.planner.color);
    if (each.planned !== null) add(track, "span", {class: "goal"}).style("left", `${(100 * each.planned) / most}%`);
    add(row, "span", {class: "bar-value"}, text(each.measured));
    const off = each.planned === null ? "" : `planned ${text(each.planned)}, ${deviationText(deviation(each.planned, each.measured))}`;
    add(row, "span", {class: "bar-plan"}, off);
  }
}

/** All planners of all runs, with unique names. */
function everyPlanner(runs) {
  return runs.flatMap((run, place) => run.planners.map((planner) => {
    const label = runs.length > 1 ? `${place + 1}: ${planner.name}` : planner.name;
    return {run, planner, label};
  }));
}

/** Planned and measured figures: a card for each figure, then a table of all numbers. */
function summarySection(parent, runs) {
  const made = section(parent, "summary", "Planned and measured figures",
    "Per iteration; bits and bytes count whole frames. A bar is the measured figure, the mark on it the planned " +
    "figure. Each cell of the table has, from top to bottom, the measured figure, the planned figure, and the difference.");
  const planners = everyPlanner(runs);
  const cards = add(made, "div", {class: "cards"});
  const names = ["sending_rate_bps", "ps_ingress_bytes", "communication_time_s", "aggregation_ratio"];
  names.forEach((name) => figureCard(cards, name, planners));
  const rows = planners.flatMap(({planner, label}) => {
    const jobs = planner.jobs.length > 1 ? [null, ...planner.jobs.map((job) => job.number)] : [null];
    return jobs.map((job) => ({planner, label, job}));
  });
  const several = rows.some((row) => row.job !== null);
  const figures = Object.keys(FIGURES).map(figureColumn);
  sortedTable(made, {
    label: "planned and measured figures", rows, filter: false, sortable: false,
    columns: [
      {name: "planner", value: (row) => (row.job === null ? row.label : ""), color: (row) => row.planner.color},
      ...(several ? [{name: "job", mark: () => "short", value: (row) => (row.job === null ? "all jobs" : `job ${row.job}`)}] : []),
      {name: "verdict", mark: () => "short", value: (row) => (row.job === null ? `${VERDICT_SIGNS[row.planner.verdict] || ""} ${row.planner.verdict}` : "")},
      {name: "sums", value: (row) => (row.job !== null || row.planner.exact === null ? "" : row.planner.exact ? "exact" : "not exact")},
      ...figures,
    ],
  });
  if (several) add(made, "p", {class: "about"}, "For all jobs, the rate and the time are those of the slowest job, and the PS ingress is the sum of all jobs.");
  notesList(made, planners);
}

/** The column of a figure: measured, below it planned and the deviation; retransmissions are not planned. */
function figureColumn(name) {
  const {name: title, text} = FIGURES[name];
  return {
    name: title,
    value: (row) => figureOf(row.planner, name, row.job).measured,
    text: (row) => text(figureOf(row.planner, name, row.job).measured),
    draw: (cell, row) => {
      const {planned, measured} = figureOf(row.planner, name, row.job);
      add(cell, "span", {class: "measured"}, text(measured));
      if (name === "retransmissions" || planned === null) return;
      add(cell, "span", {class: "planned"}, text(planned));
      if (measured !== null) add(cell, "span", {class: "off"}, deviationText(deviation(planned, measured)));
    },
  };
}

/** Notes on faults, collisions and packets of other trees. */
function notesList(parent, planners) {
  const notes = planners.flatMap(({planner}) => planner.notes);
  if (!notes.length) return;
  const list = add(parent, "ul", {class: "notes"});
  notes.forEach((note) => add(list, "li", {}, note));
}
