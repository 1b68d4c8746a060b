"use strict";
// Charts over time: lines in steps, bands, one cursor for all of them.

const CHART_PX = [280, 640];
const CHART_MARGIN = {left: 78, right: 10, top: 8, bottom: 24};

/** The scale of time of a chart. */
function timeScale(planner, width) {
  return linear([0, endOf(planner) || 1], [CHART_MARGIN.left, width - CHART_MARGIN.right]);
}

/** The end of a planner's run. */
function endOf(planner) {
  const ends = planner.iterations.map((each) => (each.started_s || 0) + each.time_s);
  return Math.max(planner.series.end_s, ...ends, 0);
}

/** An axis below a drawing, with as many labels as have room, and all of each; `lines` is the height of the lines above it. */
function bottomAxis(svg, x, bottom, text, lines = 0) {
  const axis = d3.axisBottom(x).ticks(Math.max(1, Math.floor((x.range()[1] - x.range()[0]) / 85))).tickSizeOuter(0).tickFormat(text);
  if (lines) axis.tickSize(-lines);
  const labels = add(svg, "g", {class: `axis${lines ? " grid" : ""}`, transform: `translate(0,${bottom})`}).call(axis).selectAll("text");
  const end = Number(svg.attr("viewBox").split(" ")[2]);
  labels.attr("dx", function (at) { return Math.min(0, end - x(at) - this.getComputedTextLength() / 2 - 1); });
}

/** A time on the axis, in the unit of the whole axis. */
function axisTime(at, x) {
  const [size, unit] = unitOf(x.domain()[1], TIME_UNITS);
  return `${+(at / size).toPrecision(6)} ${unit}`;
}

/** A value at an axis, in the unit of the peak, without zeros at its end. */
function tickText(value, peak, text) {
  return value ? text(value, peak).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ") : "0";
}

/** An empty chart over time: its caption, axes and scales; `label` describes it to screen readers. */
function chartFrame(parent, planner, {title, label, text, peak, height, rowsOf}) {
  const width = Math.max(CHART_PX[0], Math.min(CHART_PX[1], parent.node().clientWidth - 20));
  const figure = add(parent, "figure", {class: "chart"});
  const caption = add(figure, "figcaption");
  add(caption, "strong", {}, title);
  const svg = add(figure, "svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
  svg.style("max-width", `${width}px`);
  exportButtons(figure, title, () => [svg.node()], rowsOf);
  const x = timeScale(planner, width);
  const y = linear([0, peak * 1.05], [height - CHART_MARGIN.bottom, CHART_MARGIN.top]);
  const ticks = d3.axisLeft(y).ticks(3).tickSize(-(width - CHART_MARGIN.left - CHART_MARGIN.right));
  add(svg, "g", {class: "axis grid", transform: `translate(${CHART_MARGIN.left},0)`})
    .call(ticks.tickFormat((value) => tickText(value, peak, text)));
  bottomAxis(svg, x, height - CHART_MARGIN.bottom, (at) => axisTime(at, x));
  return {svg, x, y, height, caption};
}

/** Lines of which those with equal values, but for a thousandth of the peak, are one, with all their names. */
function distinct(lines, peak) {
  const found = [];
  for (const line of lines) {
    const same = found.find((each) => each.values.every((value, place) => Math.abs(value - line.values[place]) <= peak / 1000));
    if (same) same.name = [same.name, line.name].filter(Boolean).join(", ");
    else found.push({...line});
  }
  return found;
}

/**
 * A chart of one or more lines. `lines`: {name, values, color, dash, area}; `text` writes a value with its unit; `starts`
 * are the times at which values begin.
 */
function lineChart(parent, planner, {title, lines: given, text, most = 0, height = 132, starts = planner.series.starts_s}) {
  const lines = distinct(given, d3.max(given, (line) => d3.max(line.values)) || 0);
  const peak = Math.max(most, d3.max(lines, (line) => d3.max(line.values)) || 0) || 1;
  const label = `${title}: ${lines.map((line) => `${line.name || "mean"} ${summaryOf(line.values, text)}`).join("; ")}`;
  const {svg, x, y, caption} = chartFrame(parent, planner, {title, label, text, peak, height, rowsOf: () => [
    ["at_s", ...given.map((line) => line.name || title)], ...starts.map((at, place) => [at, ...given.map((line) => line.values[place])]),
  ]});
  for (const line of lines.filter((each) => given.length > 1 && each.name)) {
    const entry = add(caption, "span", {class: "key"});
    add(entry, "span", {class: `line ${line.dash ? "dashed" : ""}`}).style("border-color", line.color);
    add(entry, "span", {}, line.name);
  }
  drawMoments(svg, planner, x, height);
  lines.forEach((line, place) => drawLine(svg, line, starts, endOf(planner), x, y, 1.7 + 1.5 * (lines.length - 1 - place)));
  drawCursor(svg, planner, x, height);
}

/** One line. The first of several is the widest, so that overlapping lines stay visible. */
function drawLine(svg, line, starts, end, x, y, wide) {
  const points = line.values.map((value, place) => [starts[place], value]);
  if (line.values.length) points.push([Math.max(end, starts[starts.length - 1]), line.values[line.values.length - 1]]);
  const shape = d3.line().curve(d3.curveStepAfter).x((point) => x(point[0])).y((point) => y(point[1]));
  if (line.area) {
    const area = d3.area().curve(d3.curveStepAfter).x((point) => x(point[0])).y0(y(0)).y1((point) => y(point[1]));
    add(svg, "path", {class: "area", d: area(points)}).style("fill", line.color);
  }
  add(svg, "path", {class: `line${line.dash ? " dashed" : ""}`, d: shape(points)})
    .style("stroke", line.color).style("stroke-width", `${line.dash ? 1.7 : wide}px`);
}

/** Thin lines at the beginnings of iterations, and bands for the durations of faults. */
function drawMoments(svg, planner, x, height) {
  const bottom = height - CHART_MARGIN.bottom;
  for (const event of planner.events.filter((each) => each.at_s !== null)) {
    const until = event.lasting_s === null ? endOf(planner) : event.at_s + event.lasting_s;
    add(svg, "rect", {class: "fault", x: x(event.at_s), width: Math.max(1.5, x(until) - x(event.at_s)),
                      y: CHART_MARGIN.top, height: bottom - CHART_MARGIN.top});
  }
  const begins = new Set(planner.iterations.map((each) => each.started_s).filter((at) => at !== null));
  for (const at of begins.size > 60 ? [] : begins) {
    add(svg, "line", {class: "moment", x1: x(at), x2: x(at), y1: CHART_MARGIN.top, y2: bottom});
  }
}

/** The line at the chosen time; dragging the pointer chooses the time. */
function drawCursor(svg, planner, x, height) {
  add(svg, "line", {class: "cursor", y1: CHART_MARGIN.top, y2: height - CHART_MARGIN.bottom}).datum({x});
  moveCursors(planner);
  svg.on("click", function () {
    const seconds = x.invert(d3.mouse(this)[0]);
    const place = d3.bisectRight(planner.series.starts_s, seconds) - 1;
    if (place >= 0) choose({at: place});
  });
}

/** Move the time lines of all charts to the chosen time. */
function moveCursors(planner) {
  const at = state.at === null ? null : planner.series.starts_s[state.at];
  d3.selectAll(".cursor").style("display", at === null ? "none" : null);
  if (at === null) return;
  d3.selectAll(".cursor").each(function ({x}) { d3.select(this).attr("x1", x(at)).attr("x2", x(at)); });
}

/** The mean and the maximum of values, in words. */
function summaryOf(values, text) {
  return values.length ? `mean ${text(d3.mean(values))}, maximum ${text(d3.max(values))}` : "no values";
}
