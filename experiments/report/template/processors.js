"use strict";
// The processors and the memory that the parts of the kit, and the rest of the machine, used.

const REST = "the rest of the machine";

/** The charts and the table of the parts' use; a run in virtual time has none. */
function processorsSection(parent, run) {
  if (!run.planners.some((planner) => planner.used)) return;
  const made = section(parent, "processors", "Processors and memory",
    "Means over about a second each, measured by psutil. The memory of a process is the memory that it shares with no other process and no file; the memory of a switch in the kernel is that of its tables and registers.");
  const holder = add(made, "div");
  whenever(["planner", "run", "theme"], () => {
    const planner = run.planners[state.planner];
    holder.text("");
    if (!planner.used) {
      add(holder, "p", {class: "about"}, "The use was not measured during this planner's run.");
      return;
    }
    const charts = add(holder, "div", {class: "charts"});
    const {parts, processors} = planner.used;
    stackedChart(charts, planner, {title: `processors, of ${processors}`, parts, of: (part) => part.processors, most: processors, text: processorText});
    const kit = parts.filter((part) => part.name !== REST);
    stackedChart(charts, planner, {title: "memory of the kit", parts: kit, of: (part) => part.memory_bytes, text: sizeText});
    partsTable(holder, planner.used);
  });
}

const processorText = (value) => value.toFixed(2);

/** The colour of a part; the rest of the machine is grey. */
function partColor(used, part) {
  return part.name === REST ? "var(--strong)" : TREE_COLORS[used.parts.indexOf(part) % TREE_COLORS.length];
}

/** A stacked chart of each part's use in each interval. */
function stackedChart(parent, planner, {title, parts, of, text, most = 0}) {
  const used = planner.used;
  const totals = used.starts_s.map((_, place) => d3.sum(parts, (part) => of(part)[place]));
  const label = `${title}: ${parts.map((part) => `${part.name} ${summaryOf(of(part), text)}`).join("; ")}`;
  const {svg, x, y, height} = chartFrame(parent, planner, {title, label, text, peak: Math.max(most, d3.max(totals)) || 1, height: 190, rowsOf: () => [
    ["from_s", "until_s", ...parts.map((part) => part.name)],
    ...used.starts_s.map((at, place) => [at, used.ends_s[place], ...parts.map((part) => of(part)[place])]),
  ]});
  x.clamp(true);
  const below = totals.map(() => 0);
  for (const part of parts) {
    of(part).forEach((value, place) => {
      const [left, right] = [x(used.starts_s[place]), x(used.ends_s[place])];
      const [from, to] = [y(below[place]), y((below[place] += value))];
      const bar = shape(svg.node(), "rect", {class: "stacked", x: left, width: Math.max(0, right - left), y: to, height: from - to});
      bar.style.fill = partColor(used, part);
    });
  }
  drawMoments(svg, planner, x, height);
  drawCursor(svg, planner, x, height);
}

/** A table of each part's use, with the colours of the charts. */
function partsTable(parent, used) {
  const lasting = used.starts_s.map((start, place) => used.ends_s[place] - start);
  const mean = (part) => d3.sum(part.processors, (value, place) => value * lasting[place]) / d3.sum(lasting);
  sortedTable(parent, {
    label: "parts", rows: [...used.parts], first: null, filter: false,
    columns: [
      {name: "part", value: (part) => part.name, color: (part) => partColor(used, part)},
      {name: "processors, mean", value: mean, text: (part) => processorText(mean(part))},
      {name: "most", value: (part) => d3.max(part.processors), text: (part) => processorText(d3.max(part.processors))},
      {name: "memory, most", value: (part) => d3.max(part.memory_bytes), text: (part) => sizeText(d3.max(part.memory_bytes))},
    ],
  });
}
