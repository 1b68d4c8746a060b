"use strict";
// One run: its fabric with the choices, its tables, and its configuration.

/** All sections of a run. */
function runSections(parent, run) {
  fabricSection(parent, run);
  timelineSection(parent, run);
  processorsSection(parent, run);
  linksSection(parent, run);
  switchesSection(parent, run);
  aboutSection(parent, run);
}

let drawing = null;

/** The fabric: choices, the slider, the drawing, and the details. */
function fabricSection(parent, run) {
  const made = section(parent, "fabric", "Fabric");
  const controls = add(made, "div", {class: "controls"});
  if (run.planners.length > 1) {
    const options = run.planners.map((planner, place) => [place, planner.name, planner.color]);
    const press = options.length > 5 ? selector(controls, "Planner", options, choosePlanner) : choice(controls, "Planner", options, choosePlanner);
    whenever(["planner"], () => press(state.planner));
  }
  const shows = [["measured", "measured"], ["planned", "planned"], ["deviation", "deviation"], ["trees", "trees"]];
  const pressShow = choice(controls, "Links show", shows, (show) => choose({show}));
  whenever(["show"], () => pressShow(state.show));
  treeChoice(add(controls, "span", {class: "controls"}), run);
  const tools = add(controls, "span", {class: "tools-right"});
  timeSlider(made, run);
  const row = add(made, "div", {class: "fabric-row"});
  const side = add(row, "div", {class: "fabric-side"});
  drawing = new FabricDrawing(side, tools, run);
  fabricLegend(side, drawing);
  exportButtons(side, "fabric", () => [drawing.svg.node()], () => linkRows(run));
  circuitsNow(side, run);
  detailsPanel(row, run);
  whenever(["planner", "show", "job", "tree", "at", "theme"], () => drawing.draw());
  whenever(["pointed", "selected"], () => drawing.mark());
}

/** Show another planner, and clear a choice that its fabric may not have. */
function choosePlanner(planner) {
  choose({planner, job: null, tree: null, at: null, pointed: null, selected: null});
}

/** Lists of jobs and trees to choose from. */
function treeChoice(parent, run) {
  whenever(["planner", "job"], () => {
    const planner = run.planners[state.planner];
    parent.text("");
    if (planner.jobs.length > 1) {
      const jobs = [[null, "all jobs"], ...planner.jobs.map((job) => [job.number, `job ${job.number}`])];
      selector(parent, "Job", jobs, (job) => choose({job, tree: null, selected: job === null ? null : {kind: "job", id: job}}))(state.job);
    }
    const trees = planner.trees.filter((tree) => state.job === null || tree.job === state.job);
    const numbers = [...new Set(trees.map((tree) => tree.number))];
    if (trees.length > 1) {
      selector(parent, "Tree", [[null, "all trees"], ...numbers.map((number) => [number, `tree ${number}`])], (tree) => choose({tree}))(state.tree);
    }
  });
}

/** The circuits that are lit at the chosen time. */
function circuitsNow(parent, run) {
  const line = add(parent, "p", {class: "about", role: "status"});
  whenever(["planner", "at"], () => {
    const planner = run.planners[state.planner];
    line.property("hidden", !planner.circuits.length);
    if (!planner.circuits.length) return;
    const at = state.at === null ? 0 : planner.series.starts_s[state.at];
    const now = planner.circuits.filter((each) => each.from_s <= at && at < each.until_s);
    const names = now.map((each) => `${each.name}${at < each.lit_s ? " (dark)" : ""}`);
    line.text(`Circuits at ${timeText(at)}: ${names.join(", ") || "none"}. A unit's fibres are drawn as one link.`);
  });
}

/** The table of all directed links, with the largest deviation first. */
function linksSection(parent, run) {
  const made = section(parent, "links", "Links",
    "One row per direction; the load with the largest deviation from the plan comes first. Loads are means while the jobs of a link send.");
  const holder = add(made, "div");
  whenever(["planner", "run"], () => {
    const planner = run.planners[state.planner];
    const show = (row) => showInDrawing({kind: "link", id: row.number});
    const bytes = (facts) => deviation(facts.plannedBytes, facts.measuredBytes);
    holder.text("");
    const columns = [
        {name: "off", value: (row) => row.off, text: (row) => deviationText(row.off), bySize: true, mark: offMark},
        {name: "planned", value: (row) => row.planned, text: (row) => rateText(row.planned)},
        {name: "measured", value: (row) => row.measured, text: (row) => rateText(row.measured)},
        {name: "of capacity", value: share, text: (row) => shareText(share(row))},
        {name: "bytes", value: (row) => row.measuredBytes, text: (row) => sizeText(row.measuredBytes)},
        {name: "bytes off", value: bytes, text: (row) => deviationText(bytes(row)), bySize: true},
        {name: "queue", value: (row) => row.queue, text: (row) => (row.queue === null ? NOTHING : packetText(row.queue))},
        {name: "dropped", value: (row) => row.drops, text: (row) => countText(row.drops)},
    ];
    foldedTable(holder, "link", "links", allLinks(run, planner), show, columns);
  });
}

/** A table with a row for each of the things that have a `name`, or, where most are like others, for all that are alike. */
function foldedTable(holder, one, many, rows, act, columns) {
  const alike = d3.nest().key((row) => columns.map((column) => column.text(row)).join("|")).entries(rows).map(({values}) => values);
  const folded = alike.length < rows.length / 2;
  const press = folded ? choice(holder, `${many[0].toUpperCase()}${many.slice(1)} that are alike`, [[true, "in one row"], [false, "a row each"]], fill) : () => {};
  const table = add(holder, "div");
  function fill(together) {
    press(together);
    table.text("");
    const nameOf = (same) => (same.length === 1 ? same[0].name : `${countText(same.length)} ${many}, such as ${same[0].name}`);
    const shown = together ? alike.map((same) => ({...same[0], name: nameOf(same)})) : rows;
    sortedTable(table, {label: many, rows: shown, first: 1, columns: [{name: one, value: (row) => row.name, act}, ...columns]});
  }
  fill(folded);
}

/** All links of the chosen planner, for CSV. */
function linkRows(run) {
  const keys = ["name", "planned", "measured", "capacity", "plannedBytes", "measuredBytes", "queue", "drops"];
  const heads = ["link", "planned_bps", "measured_bps", "capacity_bps", "planned_bytes", "measured_bytes", "longest_queue_packets", "drops"];
  return [heads, ...allLinks(run, run.planners[state.planner]).map((facts) => keys.map((key) => facts[key]))];
}

/** A link's part of its capacity. The time of its jobs ends with the last result, a little before its last packet. */
const share = (facts) => (facts.measured === null ? null : Math.min(1, facts.measured / facts.capacity));
const offMark = (row) => (row.off !== null && Math.abs(row.off) > 0.05 ? "far" : "near");

/** The table of switches, with the largest deviation first. */
function switchesSection(parent, run) {
  const made = section(parent, "switches", "Switches",
    "The aggregation ratio is the number of gradient packets received per packet sent; the P4 program counts packets.");
  const holder = add(made, "div");
  whenever(["planner", "run"], () => {
    const planner = run.planners[state.planner];
    const nodes = run.fabrics[planner.fabric].nodes;
    const held = (row) => (planner.series.held[row.node] ? d3.max(planner.series.held[row.node]) / 10 : null);
    const off = (row) => deviation(row.planned_ratio, row.measured_ratio);
    const sums = (row) => d3.sum(planner.trees, (tree) => tree.aggregators.filter((each) => each.node === row.node).length);
    const count = (name) => ({name, value: (row) => counted(row, name), text: (row) => countText(counted(row, name))});
    const read = SELDOM.filter((name) => planner.switches.some((row) => counted(row, name) !== null));
    const seldom = read.filter((name) => planner.switches.some((row) => counted(row, name)));
    const never = read.filter((name) => !seldom.includes(name));
    holder.text("");
    foldedTable(holder, "switch", "switches", planner.switches.map((row) => ({...row, name: nodes[row.node].name})),
      (row) => showInDrawing({kind: "node", id: row.node}), [
        {name: "off", value: off, text: (row) => deviationText(off(row)), bySize: true},
        {name: "ratio planned", value: (row) => row.planned_ratio, text: (row) => ratioText(row.planned_ratio)},
        {name: "ratio measured", value: (row) => row.measured_ratio, text: (row) => ratioText(row.measured_ratio)},
        {name: "tier", value: (row) => nodes[row.node].tier, text: (row) => countText(nodes[row.node].tier)},
        {name: "aggregators", value: sums, text: (row) => countText(sums(row))},
        {name: "most held", value: held, text: (row) => (held(row) === null ? NOTHING : fragmentText(held(row)))},
        ...["added", "completed", ...seldom].map(count),
      ]);
    if (never.length) add(holder, "p", {class: "about"}, `0 in every switch: ${never.join(", ")}.`);
  });
}

/** Counters of packets that most runs have none of. */
const SELDOM = ["collision", "evicted", "lost", "rejected", "malformed"];

/** A counter of a switch; null if it was not read. */
function counted(row, name) {
  return row.counts[name] === undefined ? null : row.counts[name];
}

/** Choose an item, and scroll to the drawing. */
function showInDrawing(thing) {
  choose({selected: thing, pointed: null});
  document.getElementById("fabric").scrollIntoView({behavior: "smooth"});
}

/** The configuration of the run, and the command that repeats it. */
function aboutSection(parent, run) {
  const made = section(parent, "about", "How it was run");
  if (run.command) {
    const line = add(made, "p", {class: "command"});
    add(line, "code", {}, run.command);
    const copy = button(line, "Copy", () => navigator.clipboard.writeText(run.command).then(() => copy.text("Copied")));
  }
  const columns = add(made, "div", {class: "facts"});
  const general = add(columns, "dl");
  fact(general, "world", `${run.world}, mode ${run.mode}`);
  fact(general, "seed", String(run.seed));
  fact(general, "scale of rates", run.scale === 1 ? "1: as described" : `${run.scale} of the described rates`);
  fact(general, "started", run.started);
  fact(general, "ended", run.finished || "it has not ended");
  fact(general, "folder", run.folder);
  Object.entries(run.machine).forEach(([name, value]) => fact(general, name.replace(/_/g, " "), machineText(name, value)));
  const versions = add(columns, "dl");
  Object.entries(run.versions).forEach(([name, value]) => fact(versions, name, value || "not installed"));
  const faults = run.configuration.faults;
  const asked = add(made, "details");
  add(asked, "summary", {}, `Configuration${faults ? ", with the faults" : ""}`);
  add(asked, "pre", {tabindex: 0}, JSON.stringify(run.configuration, null, 1));
}

/** A fact about the machine. */
function machineText(name, value) {
  if (name === "memory_bytes") return sizeText(value);
  return typeof value === "number" ? String(+value.toFixed(2)) : String(value);
}
