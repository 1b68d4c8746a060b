"use strict";
// A study: its groups, the paired differences between planners, its figures, and every run.

/** All sections of a study. */
function studySections(parent, study) {
  const made = section(parent, "groups", "Groups", `${study.counted}. Means with their 95 % intervals (bootstrap).`);
  const charts = add(made, "div", {class: "charts"});
  for (const figure of study.figures) studyChart(charts, study, figure);
  summaryTable(made, "groups", study.keys, study.groups, [
    ["mean", (row) => row.mean], ["95 %: from", (row) => row.low], ["to", (row) => row.high], ["median", (row) => row.median],
  ]);
  if (study.differences.length) {
    const paired = section(parent, "differences", "Paired differences",
      `Each planner minus ${study.baseline}, in runs that differ only in the planner, with 95 % intervals (bootstrap). ` +
      "An interval that crosses the line shows no difference.");
    for (const figure of new Set(study.differences.map((row) => row.figure))) {
      forestPlot(paired, study, study.differences.filter((row) => row.figure === figure), columnWords(figure));
    }
    const keys = study.keys.filter((key) => key !== "planner");
    summaryTable(paired, "differences", [...keys, "planner"], study.differences, [
      ["mean", (row) => row.mean], ["95 %: from", (row) => row.low], ["to", (row) => row.high],
    ], {name: "of the mean", value: (row) => row.share, text: (row) => deviationText(row.share), bySize: true});
  }
  runsTable(parent, study);
}

/** The text format of a study's figure, by the unit at the end of its name. */
function studyText(name) {
  const bare = name.replace(/^(planned|measured)_/, "");
  if (bare.endsWith("_bps")) return rateText;
  if (bare.endsWith("_bytes")) return sizeText;
  return bare.endsWith("_s") ? timeText : (value) => (value === null ? NOTHING : String(+value.toPrecision(4)));
}

/** A table of groups or of differences. */
function summaryTable(parent, label, keys, rows, numbers, ...others) {
  const text = (row, value) => (value === null ? NOTHING : studyText(row.figure)(value, row.mean || value));
  sortedTable(parent, {
    label, rows, first: null,
    columns: [
      {name: keys.join(", ") || "all runs", value: (row) => row.names.join(", ")},
      {name: "figure", value: (row) => columnWords(row.figure)},
      ...numbers.map(([name, value]) => ({name, value, text: (row) => text(row, value(row))})),
      ...others,
      {name: "runs", value: (row) => row.runs, text: (row) => countText(row.runs)},
    ],
  });
}

const FOREST_ROW_PX = 24;
const FOREST_NAME_PX = 200;

/** The paired differences of a figure, relative to the baseline's mean: a dot and an interval for each group. */
function forestPlot(parent, study, rows, title) {
  const known = rows.filter((row) => row.share !== null);
  if (!known.length) return;
  const names = Math.min(FOREST_NAME_PX, 24 + NAME_LETTER_PX * d3.max(known, (row) => row.names.join(", ").length));
  const width = Math.max(CHART_PX[0], Math.min(860, parent.node().clientWidth));
  const height = known.length * FOREST_ROW_PX + 44;
  const part = (row, value) => (value === null || !row.mean ? row.share : (value * row.share) / row.mean);
  const ends = known.flatMap((row) => [part(row, row.low), part(row, row.high), 0]);
  const x = linear([d3.min(ends), d3.max(ends)], [names, width - 46]).nice();
  const label = known.map((row) => `${row.names.join(", ")}: ${deviationText(row.share)}`).join("; ");
  const figure = add(parent, "figure", {class: "chart"});
  add(add(figure, "figcaption"), "strong", {}, `${title}, above ${study.baseline}`);
  const svg = add(figure, "svg", {class: "forest", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${label}`});
  svg.style("max-width", `${width}px`);
  bottomAxis(svg, x, height - 26, (value) => deviationText(value).replace(".0 ", " "), height - 34);
  add(svg, "line", {class: "moment", x1: x(0), x2: x(0), y1: 6, y2: height - 26});
  known.forEach((row, place) => {
    const y = 18 + place * FOREST_ROW_PX;
    const name = row.names.join(", ");
    add(add(svg, "text", {class: "row-name", x: names - 12, y: y + 4}, name.length > 30 ? `${name.slice(0, 29)}…` : name), "title", {}, name);
    if (row.low !== null) {
      const d = `M${x(part(row, row.low))},${y}H${x(part(row, row.high))}`;
      add(svg, "path", {class: "line halo", d});
      add(svg, "path", {class: "line", d}).style("stroke", row.color);
    }
    add(add(svg, "circle", {class: "dot", cx: x(row.share), cy: y, r: 4.5}).style("fill", row.color), "title", {}, `${name}: ${deviationText(row.share)}`);
  });
  exportButtons(figure, `${title} above ${study.baseline}`, () => [svg.node()],
    () => [[...study.keys.filter((key) => key !== "planner"), "planner", "share", "mean", "low", "high", "runs"],
      ...rows.map((row) => [...row.names, row.share, row.mean, row.low, row.high, row.runs])]);
}

/** A chart from the study's file: a panel for each facet, a line with intervals for each colour. */
function studyChart(parent, study, figure) {
  const box = add(parent, "figure", {class: "chart"});
  const caption = add(box, "figcaption");
  add(caption, "strong", {}, `${columnWords(figure.y)} over ${columnWords(figure.x)}`);
  const colors = new Map(figure.lines.map((line) => [line.name, line.color]));
  for (const [name, color] of colors) {
    const entry = add(caption, "span", {class: "key"});
    chip(entry, color);
    add(entry, "span", {}, name);
  }
  const panels = add(box, "div", {class: "panels"});
  const facets = d3.nest().key((line) => line.facet).entries(figure.lines).map(({key, values}) => [add(panels, "div"), key, values]);
  facets.forEach(([panel, key, values]) => studyPanel(panel, figure, key, values));
  exportButtons(box, `${columnWords(figure.y)} over ${columnWords(figure.x)}`, () => panels.selectAll("svg").nodes(),
    () => [["facet", "line", figure.x, "mean", "low", "high"],
      ...figure.lines.flatMap((line) => line.points.map((point) => [line.facet, line.name, point.x, point.mean, point.low, point.high]))]);
}

/** One panel. */
function studyPanel(parent, figure, facet, lines) {
  const [width, height] = [Math.max(CHART_PX[0], Math.min(560, parent.node().clientWidth)), 280];
  const places = [...new Set(figure.lines.flatMap((line) => line.points.map((point) => point.x)))];
  const numeric = places.every((place) => typeof place === "number");
  const sorted = numeric ? places.sort(d3.ascending) : places;
  const text = studyText(figure.y);
  const most = d3.max(figure.lines, (line) => d3.max(line.points, (point) => point.high === null ? point.mean : point.high)) || 1;
  const x = d3.scalePoint().domain(sorted).range([88, width - 16]).padding(0.3);
  const y = linear([0, most * 1.05], [height - 34, 22]);
  const told = lines.map((line) => `${line.name}: ${line.points.map((point) => `${text(point.mean)} at ${point.x}`).join(", ")}`).join("; ");
  const svg = add(parent, "svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${facet} ${told}`});
  svg.style("max-width", `${width}px`);
  if (facet) add(svg, "text", {class: "facet", x: 88, y: 13}, facet);
  add(svg, "g", {class: "axis grid", transform: "translate(88,0)"})
    .call(d3.axisLeft(y).ticks(5).tickSize(-(width - 104)).tickFormat((value) => tickText(value, most, text)));
  add(svg, "g", {class: "axis", transform: `translate(0,${height - 34})`}).call(d3.axisBottom(x));
  add(svg, "text", {class: "row-name middle", x: width / 2, y: height - 3}, columnWords(figure.x));
  lines.forEach((line, number) => {
    const points = [...line.points].sort((one, other) => sorted.indexOf(one.x) - sorted.indexOf(other.x));
    const at = (point) => x(point.x) + 5 * (number - (lines.length - 1) / 2);
    const shape = d3.line().x(at).y((point) => y(point.mean));
    add(svg, "path", {class: "line halo", d: shape(points)});
    add(svg, "path", {class: "line", d: shape(points)}).style("stroke", line.color);
    for (const point of points) {
      if (point.low !== null) {
        add(svg, "line", {class: "whisker", x1: at(point), x2: at(point), y1: y(point.low), y2: y(point.high)}).style("stroke", line.color);
      }
      const dot = add(svg, "circle", {class: "dot", cx: at(point), cy: y(point.mean), r: 3.5}).style("fill", line.color);
      add(dot, "title", {}, `${line.name}: ${text(point.mean)}`);
    }
  });
}

/** All runs of a study; runs that do not count come first. */
function runsTable(parent, study) {
  const made = section(parent, "runs", "All runs", "A failed run shows its error; a run that is not VALID does not count.");
  const bad = (row) => (row.error ? 2 : row.verdict && row.verdict !== "VALID" ? 1 : 0);
  sortedTable(made, {
    label: "runs", rows: study.rows, first: 1,
    columns: [
      {name: study.varied.join(", ") || "run", value: (row) => study.varied.map((key) => row[key]).join(", ") || row.run},
      {name: "verdict", value: bad, text: (row) => (row.error ? "✕ failed" : row.verdict || "planned only")},
      ...study.shown.map((name) => ({name: columnWords(name), value: (row) => row[name], text: (row) => studyText(name)(row[name])})),
      {name: "reason", value: (row) => row.error || row.reasons || ""},
    ],
  });
}
