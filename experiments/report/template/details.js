"use strict";
// The details of the node, link or job under the pointer or chosen: its figures, its counters, and its series.

/** The panel beside the drawing. */
function detailsPanel(parent, run) {
  const panel = add(parent, "aside", {class: "details", "aria-label": "details", "aria-live": "polite"});
  let shown = null;
  whenever(["pointed", "selected", "planner", "run", "at", "theme"], () => {
    const planner = run.planners[state.planner];
    const thing = state.pointed || state.selected;
    const now = JSON.stringify([thing, state.selected !== null, state.planner, state.at, state.theme]);
    if (now === shown) return;
    shown = now;
    panel.text("");
    if (!thing) return nothingChosen(panel, planner);
    const kinds = {link: linkDetails, job: jobDetails, node: nodeDetails};
    return kinds[thing.kind](panel, run, planner, thing.id);
  });
}

/** Instructions and the jobs, while nothing is chosen. */
function nothingChosen(panel, planner) {
  add(panel, "h3", {class: "hint"}, "Point at a link, a switch or a host");
  add(panel, "p", {class: "hint"}, "Its figures, counters and series are shown here. Click or press Enter to keep them.");
  jobButtons(panel, planner.jobs);
  if (planner.fragments && planner.fragments.followed) fragmentTable(panel, planner.fragments);
}

/** Buttons that show jobs in the details. */
function jobButtons(panel, jobs) {
  const line = add(panel, "p", {class: "buttons"});
  jobs.forEach((job) => button(line, `job ${job.number}`, () => choose({selected: {kind: "job", id: job.number}, pointed: null})));
}

/** The parts of the fragments' times. */
function fragmentTable(panel, fragments) {
  add(panel, "h4", {}, `Time per fragment (${countText(fragments.followed)} followed)`);
  const rows = Object.entries(fragments.seconds).filter(([part]) => !part.startsWith("result_"));
  const longest = Math.max(...rows.map(([, times]) => times.max));
  sortedTable(panel, {
    label: "times of fragments", filter: false, sortable: false, rows,
    columns: [
      {name: "part", value: ([part]) => part},
      ...[["mean", "mean"], ["p99", "99 %"], ["max", "most"]].map(([key, name]) => (
        {name, value: ([, times]) => times[key], text: ([, times]) => timeText(times[key], longest)})),
    ],
  });
}

/** A heading with a button that clears the choice. */
function detailsHeading(panel, kind, name) {
  const line = add(panel, "div", {class: "details-heading"});
  const heading = add(line, "h3");
  add(heading, "span", {class: "kind"}, `${kind} `);
  add(heading, "span", {}, name);
  if (state.selected) button(line, "Close", () => choose({selected: null, pointed: null}), {"aria-label": "close the details"});
}

/** A directed link. */
function linkDetails(panel, run, planner, number) {
  const facts = linkFacts(run, planner, number);
  detailsHeading(panel, facts.optical ? "optical link" : "link", facts.name);
  const list = add(panel, "dl");
  fact(list, "capacity", `${rateText(facts.capacity)}${facts.delay ? `, delay ${timeText(facts.delay)}` : ""}`);
  fact(list, "load planned", `${rateText(facts.planned)} (${shareText(facts.planned === null ? null : facts.planned / facts.capacity)})`);
  fact(list, "load measured", `${rateText(facts.measured)} (${shareText(facts.measured === null ? null : facts.measured / facts.capacity)})`);
  fact(list, "deviation from the plan", deviationText(facts.off));
  fact(list, "bytes", `planned ${sizeText(facts.plannedBytes)}, measured ${sizeText(facts.measuredBytes)}`);
  if (facts.drops !== null) fact(list, "queue dropped", countText(facts.drops));
  if (state.at !== null && facts.used) {
    fact(list, `at ${timeText(planner.series.starts_s[state.at])}`, rateText((facts.used[state.at] / 1000) * facts.capacity));
  }
  const trees = planner.trees.filter((tree) => tree.links.includes(number));
  const results = planner.trees.filter((tree) => tree.result_links.includes(number));
  if (trees.length) fact(list, "gradients of", trees.map((tree) => `job ${tree.job} tree ${tree.number}`).join(", "));
  if (results.length) fact(list, "results of", results.map((tree) => `job ${tree.job} tree ${tree.number}`).join(", "));
  button(add(panel, "p", {class: "buttons"}), "the other direction", () => choose({selected: {kind: "link", id: number ^ 1}, pointed: null}));
  if (!facts.used) return;
  rateChart(panel, planner, "rate", facts.used.map((used) => (used / 1000) * facts.capacity), facts.planned);
  queueChart(panel, planner, number);
}

/** A chart of a rate over time, with the planned rate. */
function rateChart(panel, planner, title, values, planned) {
  const lines = [{name: "measured", values, color: "var(--accent)", area: true}];
  if (planned) lines.push({name: "planned", values: values.map(() => planned), color: "var(--plan)", dash: true});
  lineChart(panel, planner, {title, lines, text: rateText});
}

/** A chart of the queue before a link. */
function queueChart(panel, planner, number) {
  const [waiting, most] = [planner.series.waiting[number], planner.series.most_waiting[number]];
  if (!waiting) return;
  const tenths = (values) => values.map((value) => value / 10);
  lineChart(panel, planner, {
    title: "waiting packets", text: packetText,
    lines: [{name: "mean", values: tenths(waiting), color: "var(--accent)", area: true},
            {name: "maximum", values: tenths(most), color: "var(--plan)"}],
  });
}

const packetText = (value) => counting(value, "packet");
const fragmentText = (value) => counting(value, "fragment");

/** A host or a switch. */
function nodeDetails(panel, run, planner, id) {
  const node = run.fabrics[planner.fabric].nodes[id];
  const links = allLinks(run, planner);
  const [sends, receives] = [links.filter((facts) => facts.from === id), links.filter((facts) => facts.to === id)];
  if (node.tier) switchDetails(panel, planner, id, node);
  else hostDetails(panel, planner, id, node);
  const list = add(panel, "dl");
  fact(list, "sends", `planned ${sumText(sends, "planned")}, measured ${sumText(sends, "measured")}`);
  fact(list, "receives", `planned ${sumText(receives, "planned")}, measured ${sumText(receives, "measured")}`);
  const held = planner.series.held[id];
  if (held) {
    const values = held.map((tenths) => tenths / 10);
    lineChart(panel, planner, {title: "fragments held", text: fragmentText, lines: [{values, color: "var(--accent)", area: true}]});
  }
  const rates = sumOfRates(planner, sends);
  if (rates) rateChart(panel, planner, node.tier ? "sending rate, all links" : "sending rate", rates, d3.sum(sends, (facts) => facts.planned));
  const inward = sumOfRates(planner, receives);
  if (inward) rateChart(panel, planner, "receiving rate", inward, d3.sum(receives, (facts) => facts.planned));
}

/** The sum of a figure over links, in words. */
function sumText(links, figure) {
  return links.every((facts) => facts[figure] === null) ? NOTHING : rateText(d3.sum(links, (facts) => facts[figure]));
}

/** The sum of several links' rates over time; null if no rate is known. */
function sumOfRates(planner, links) {
  const known = links.filter((facts) => facts.used);
  if (!known.length) return null;
  return planner.series.starts_s.map((_, place) => d3.sum(known, (facts) => (facts.used[place] / 1000) * facts.capacity));
}

/** A switch: its aggregators, and its counters. */
function switchDetails(panel, planner, id, node) {
  detailsHeading(panel, "switch", node.name);
  const found = planner.switches.find((each) => each.node === id);
  const list = add(panel, "dl");
  const slots = node.slots === null ? "" : `, ${countText(node.slots)} slots each`;
  fact(list, "aggregates", node.ina ? `yes: ${node.pipelines} pipeline${node.pipelines > 1 ? "s" : ""}${slots}` : "no");
  if (found) fact(list, "aggregation ratio", `planned ${ratioText(found.planned_ratio)}, measured ${ratioText(found.measured_ratio)}`);
  for (const tree of planner.trees) {
    for (const each of tree.aggregators.filter((aggregator) => aggregator.node === id)) {
      const where = `${each.senders} senders, pipeline ${each.pipeline}, slots ${each.first_slot} to ${each.first_slot + each.slots - 1}`;
      fact(list, `job ${tree.job} tree ${tree.number}`, where);
    }
  }
  const counts = Object.entries(found ? found.counts : {}).filter(([, count]) => count);
  if (!counts.length) return;
  add(panel, "h4", {}, "Packets, counted by the P4 program");
  const counted = add(panel, "dl", {class: "counts"});
  counts.forEach(([name, count]) => fact(counted, name.replace(/_/g, " "), countText(count)));
}

/** A host: its role in jobs, and its rate in each iteration. */
function hostDetails(panel, planner, id, node) {
  const works = planner.jobs.filter((job) => job.workers.includes(id));
  const serves = planner.jobs.filter((job) => job.servers.includes(id));
  detailsHeading(panel, works.length ? "worker" : serves.length ? "parameter server" : "host", node.name);
  if (works.length || serves.length) jobButtons(panel, [...works, ...serves]);
  const rows = planner.iterations.filter((each) => each.rates_bps[id] !== undefined);
  if (!rows.length) return;
  sortedTable(panel, {
    label: "its iterations", filter: false, sortable: false, rows,
    columns: [
      {name: "job, iteration", value: (row) => `${row.job}, ${row.number}`},
      {name: "sending rate", value: (row) => row.rates_bps[id], text: (row) => rateText(row.rates_bps[id])},
      {name: "time", value: (row) => row.time_s, text: (row) => timeText(row.time_s)},
    ],
  });
}

/** A job: its figures, its iterations, and the total rate of its workers. */
function jobDetails(panel, run, planner, number) {
  const job = planner.jobs.find((each) => each.number === number);
  detailsHeading(panel, "job", String(number));
  const list = add(panel, "dl");
  fact(list, "workers", `${countText(job.workers.length)}, with ${countText(job.servers.length)} parameter server${job.servers.length > 1 ? "s" : ""}`);
  fact(list, "gradient", `${sizeText(job.gradient_bytes)}${job.model ? ` (${job.model})` : ""}, ${job.iterations} iteration${job.iterations > 1 ? "s" : ""}`);
  if (job.arrival_s) fact(list, "arrives", `at ${timeText(job.arrival_s)}`);
  const own = planner.jobs.length > 1 || planner.figures.some((each) => each.job === number) ? number : null;
  for (const name of ["sending_rate_bps", "ps_ingress_bytes", "communication_time_s", "aggregation_ratio"]) {
    const {planned, measured} = figureOf(planner, name, own);
    const {name: title, text} = FIGURES[name];
    fact(list, title, `planned ${text(planned)}, measured ${text(measured)} (${deviationText(deviation(planned, measured))})`);
  }
  const rows = planner.iterations.filter((each) => each.job === number);
  sortedTable(panel, {
    label: "its iterations", filter: false, sortable: false, rows,
    columns: [
      {name: "iteration", value: (row) => String(row.number)},
      {name: "began at", value: (row) => row.started_s, text: (row) => timeText(row.started_s)},
      {name: "communication time", value: (row) => row.time_s, text: (row) => timeText(row.time_s)},
    ],
  });
  const uplinks = allLinks(run, planner).filter((facts) => job.workers.includes(facts.from));
  const rates = sumOfRates(planner, uplinks);
  if (rates) rateChart(panel, planner, "total rate of its workers", rates, null);
}
