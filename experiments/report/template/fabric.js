"use strict";
// The drawing of a fabric: a row for each tier, a line for each direction of a link, and the links' loads.

const FABRIC_MARGIN = {x: 46, top: 34, bottom: 40};
const NEAR_PX = 7;
const IDLE_DENSITY = 900;
const MOST_LABELS = 260;
const LETTER_PX = 6.7;
const MOST_SWITCH_PX = 84;
const DEVIATION_SHOWN = 0.1;
const OVER_COLOR = "#d55e00";

/** The properties and the load of a directed link, by its number. */
function linkFacts(run, planner, number) {
  const fabric = run.fabrics[planner.fabric];
  const link = fabric.links[number >> 1];
  const [from, to] = number & 1 ? [link.b, link.a] : [link.a, link.b];
  const of = (list) => (list.length ? list[number] : null);
  const used = planner.series.used[number] || null;
  const capacity = number & 1 ? link.capacity_ba_bps : link.capacity_ab_bps;
  const planned = of(planner.loads.planned_bps);
  const measured = of(planner.loads.measured_bps);
  return {
    number, from, to, capacity, planned, measured, used, optical: link.optical, delay: link.delay_s,
    name: `${fabric.nodes[from].name} → ${fabric.nodes[to].name}`,
    off: planned || measured ? deviation(planned, measured) : null,
    plannedBytes: of(planner.loads.planned_bytes), measuredBytes: of(planner.loads.measured_bytes),
    drops: of(planner.loads.drops),
    queue: planner.series.most_waiting[number] ? d3.max(planner.series.most_waiting[number]) / 10 : null,
  };
}

/** All directed links of a planner, computed once. */
const factsOfPlanner = new WeakMap();
function allLinks(run, planner) {
  if (!factsOfPlanner.has(planner)) {
    const count = 2 * run.fabrics[planner.fabric].links.length;
    factsOfPlanner.set(planner, d3.range(count).map((number) => linkFacts(run, planner, number)));
  }
  return factsOfPlanner.get(planner);
}

/** The rate of a link in the drawing: measured at the chosen time or over the whole run, or planned. */
function shownRate(facts, planner) {
  if (state.show === "planned") return facts.planned || 0;
  if (state.at !== null) return facts.used ? (facts.used[state.at] / 1000) * facts.capacity : 0;
  return facts.measured || 0;
}

/** The chosen trees. */
function chosenTrees(planner) {
  return planner.trees.filter(
    (tree) => (state.job === null || tree.job === state.job) && (state.tree === null || tree.number === state.tree));
}

/** The colour of a tree, by its place among a planner's trees. */
function treeColor(planner, tree) {
  return TREE_COLORS[planner.trees.indexOf(tree) % TREE_COLORS.length];
}

/** Colours that follow the theme. */
function loadColor() {
  const dark = document.documentElement.dataset.theme === "dark";
  const colors = dark ? ["#51606f", "#4f9be0", "#dcecff"] : ["#b4c0cc", "#3a7fc2", "#0a2c66"];
  return linear([0, 0.5, 1], colors).clamp(true);
}

/** The colour of a deviation: blue below the plan, orange above it. */
function deviationColor() {
  const dark = document.documentElement.dataset.theme === "dark";
  const colors = dark ? ["#5aa9ff", "#59636f", "#ff9d42"] : ["#0059b3", "#b4bcc5", "#c94f00"];
  return linear([-DEVIATION_SHOWN, 0, DEVIATION_SHOWN], colors).clamp(true);
}

/** The points at which links meet nodes: side by side along a node's edge, separately for links up and down. */
function sidesOf(fabric) {
  const ends = fabric.nodes.map(() => ({up: [], down: []}));
  fabric.links.forEach((link, number) => {
    for (const [node, peer] of [[link.a, link.b], [link.b, link.a]]) {
      const side = fabric.nodes[peer].y >= fabric.nodes[node].y ? "up" : "down";
      ends[node][side].push([fabric.nodes[peer].x, number]);
    }
  });
  const share = new Map();
  ends.forEach((sides, node) => {
    for (const own of [sides.up, sides.down]) {
      own.sort((one, other) => one[0] - other[0]);
      own.forEach(([, number], place) => share.set(`${node}:${number}`, (place + 0.5) / own.length - 0.5));
    }
  });
  return share;
}

/** The drawing of one run. It redraws itself when the choices change. */
class FabricDrawing {
  constructor(parent, tools, run) {
    this.run = run;
    this.box = add(parent, "div", {class: "fabric-box"});
    this.tools = add(tools, "div", {class: "choice zoom", role: "group", "aria-label": "width of the drawing"});
    button(this.tools, "+", () => this.zoomBy(1.8), {"aria-label": "wider"});
    button(this.tools, "−", () => this.zoomBy(1 / 1.8), {"aria-label": "narrower"});
    button(this.tools, "All", () => this.zoomTo(1, 0), {title: "show the whole fabric"});
    this.svg = add(this.box, "svg", {
      class: "fabric", tabindex: 0, role: "application",
      "aria-label": "Drawing of the fabric. Arrow keys move from node to node, L and Shift L through the links of a node, " +
        "Enter chooses, Escape clears, plus and minus make it wider and narrower. The tables below have the same data.",
    });
    this.layer = add(this.svg, "g");
    this.tip = add(this.box, "div", {class: "tip", "aria-hidden": "true"});
    this.factor = 1;
    this.shift = 0;
    this.focus = null;
    this.listen();
  }

  get planner() { return this.run.planners[state.planner]; }
  get fabric() { return this.run.fabrics[this.planner.fabric]; }

  /** Handle keys and the pointer. */
  listen() {
    this.svg.on("keydown", () => this.key(d3.event));
    this.svg.on("mousemove", () => this.point(this.nearest(d3.mouse(this.svg.node()))));
    this.svg.on("mouseleave", () => this.point(null));
    this.svg.on("blur", () => this.point(null));
    this.svg.on("click", () => {
      const found = this.nearest(d3.mouse(this.svg.node()));
      choose({selected: found, pointed: found});
    });
    this.svg.call(d3.drag().on("drag", () => this.zoomTo(this.factor, this.shift + d3.event.dx)));
    this.svg.on("wheel", () => {
      if (!d3.event.ctrlKey && !d3.event.metaKey) return;
      d3.event.preventDefault();
      this.zoomBy(Math.exp(-d3.event.deltaY / 300), d3.mouse(this.svg.node())[0]);
    });
    new ResizeObserver(() => requestAnimationFrame(() => this.fit())).observe(this.box.node());
  }

  /** Redraw if the width of the box has changed since the last drawing. */
  fit() {
    if (this.box.node().clientWidth !== this.boxWidth) this.draw();
  }

  /** Make the drawing wider around a point. */
  zoomBy(by, at = this.width / 2) {
    const factor = Math.min(this.mostZoom, Math.max(1, this.factor * by));
    this.zoomTo(factor, at - ((at - this.shift) * factor) / this.factor);
  }

  /** Draw at a multiple of the width of the box, shifted. */
  zoomTo(factor, shift) {
    this.factor = factor;
    this.shift = Math.min(0, Math.max(this.width * (1 - factor), shift));
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => this.draw());
  }

  get mostZoom() { return Math.max(4, (this.fabric.width * 60) / this.width); }

  /** Measure, place and draw everything. */
  draw() {
    this.boxWidth = this.box.node().clientWidth;
    this.width = Math.max(280, this.boxWidth);
    const fabric = this.fabric;
    this.height = Math.round(Math.min(560, Math.max(290, this.width * 0.6)));
    this.svg.attr("viewBox", `0 0 ${this.width} ${this.height}`);
    const inner = (this.width - 2 * FABRIC_MARGIN.x) * this.factor;
    const x = (at) => FABRIC_MARGIN.x * this.factor + (at / Math.max(1e-9, fabric.width)) * inner + this.shift;
    const unit = inner / fabric.width;
    const y = linear([0, fabric.height], [this.height - FABRIC_MARGIN.bottom, FABRIC_MARGIN.top]);
    this.hostPx = Math.max(0.4, Math.min(7, 0.3 * unit));
    this.boxes = fabric.nodes.map((node) => {
      const half = node.tier ? Math.min(MOST_SWITCH_PX, node.width * unit * 0.92) / 2 : this.hostPx;
      return {x: x(node.x), y: y(node.y), half, tall: node.tier ? Math.min(14, Math.max(3, half * 0.8)) : this.hostPx};
    });
    this.share = this.share && this.shared === fabric ? this.share : sidesOf(fabric);
    this.shared = fabric;
    this.lane = Math.max(0.25, Math.min(2.6, 0.06 * unit));
    this.bendPx = (this.height - FABRIC_MARGIN.top - FABRIC_MARGIN.bottom) / fabric.height;
    this.layer.selectAll("*").remove();
    this.drawLinks();
    this.drawNodes();
    this.drawLabels();
    this.mark();
  }

  /** The two ends of a directed link, moved to the right of its direction. */
  course(facts) {
    const number = facts.number >> 1;
    const [from, to] = [this.boxes[facts.from], this.boxes[facts.to]];
    const meet = (node, box, other) => {
      const place = this.fabric.nodes[node].tier ? this.share.get(`${node}:${number}`) * box.half * 1.6 : 0;
      return [box.x + place, box.y + (Math.abs(other.y - box.y) < 1 ? -box.tall : Math.sign(other.y - box.y) * box.tall)];
    };
    const [a, b] = [meet(facts.from, from, to), meet(facts.to, to, from)];
    const long = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const aside = this.lane * 0.5 + 0.35 * this.lane;
    const [dx, dy] = [(-(b[1] - a[1]) / long) * aside, ((b[0] - a[0]) / long) * aside];
    const bend = this.fabric.links[number].bend * this.bendPx;
    return {a: [a[0] + dx, a[1] + dy], b: [b[0] + dx, b[1] + dy], bend};
  }

  /** Whether a part of a directed link is in the box. */
  visible({a, b}) {
    return Math.max(a[0], b[0]) > -20 && Math.min(a[0], b[0]) < this.width + 20;
  }

  /** The SVG path of a link's course. */
  path({a, b, bend}) {
    const end = `${b[0].toFixed(1)},${b[1].toFixed(1)}`;
    const start = `M${a[0].toFixed(1)},${a[1].toFixed(1)}`;
    return bend ? `${start}Q${(a[0] + b[0]) / 2},${a[1] - 2 * bend} ${end}` : `${start}L${end}`;
  }

  /** Draw every cable as a thin line, and over it each direction with a load. */
  drawLinks() {
    const links = allLinks(this.run, this.planner);
    const color = state.show === "deviation" ? deviationColor() : loadColor();
    const chosen = this.emphasis();
    this.courses = new Map();
    this.loaded = new Set();
    const idle = [];
    const loaded = add(this.layer, "g", {class: "links"}).node();
    for (const facts of links) {
      const course = this.course(facts);
      if (!this.visible(course)) continue;
      this.courses.set(facts.number, course);
      const rate = shownRate(facts, this.planner);
      const share = rate / facts.capacity;
      const trees = chosen.byLink.get(facts.number);
      if (!rate && !(state.show === "trees" && trees) && !facts.planned) {
        idle.push(this.path(course));
        continue;
      }
      this.loaded.add(facts.number);
      const stroke = this.strokeOf(facts, share, trees, color);
      const kinds = [
        facts.optical ? "optical" : "", chosen.some && !trees ? "faded" : "",
        !rate && state.show !== "trees" ? "idle-now" : "", stroke === null ? "plain" : "",
      ].filter(Boolean).join(" ") || null;
      const wide = Math.max(0.4, this.lane * (0.55 + 0.75 * Math.min(1, share))).toFixed(2);
      shape(loaded, "path", {d: this.path(course), "data-link": facts.number, class: kinds, stroke, "stroke-width": wide});
      if (this.lane > 1.2) this.drawArrow(loaded, course, stroke, kinds);
    }
    const faint = Math.min(1, IDLE_DENSITY / (idle.length + 1));
    this.layer.insert("path", "g").attr("class", "idle").attr("d", idle.join("")).attr("stroke-opacity", faint.toFixed(2));
  }

  /** An arrowhead on a directed link, near its sender, in the colour of its line. */
  drawArrow(group, {a, b, bend}, fill, kinds) {
    const part = bend ? 0.5 : 0.4;
    const [x, y] = [a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1]) - bend];
    const turn = (Math.atan2(b[1] - a[1], b[0] - a[0]) * 180) / Math.PI;
    const place = `translate(${x.toFixed(1)},${y.toFixed(1)})rotate(${turn.toFixed(1)})`;
    shape(group, "path", {class: `arrow ${kinds || ""}`, d: "M5,0L-3.5,-3.6L-3.5,3.6Z", transform: place, fill});
  }

  /** The colour of a link's line; null for a link without a figure. */
  strokeOf(facts, share, trees, color) {
    if (state.show === "trees") return trees ? treeColor(this.planner, trees[0]) : null;
    if (state.show === "deviation") return facts.off === null ? null : color(facts.off);
    return share > 1.0005 ? OVER_COLOR : color(share);
  }

  /** The links and nodes of the chosen trees; `some`: whether some trees are not chosen. */
  emphasis() {
    const byLink = new Map();
    const nodes = new Set();
    const trees = chosenTrees(this.planner);
    const links = this.fabric.links;
    for (const tree of trees) {
      for (const number of [...tree.links, ...(state.show === "trees" ? [] : tree.result_links)]) {
        if (!byLink.has(number)) byLink.set(number, []);
        byLink.get(number).push(tree);
        nodes.add(links[number >> 1].a).add(links[number >> 1].b);
      }
    }
    return {byLink, nodes, some: trees.length < this.planner.trees.length};
  }

  /** Draw switches and hosts by their kind; workers and servers of the chosen job are filled. */
  drawNodes() {
    const jobs = this.planner.jobs.filter((job) => state.job === null || job.number === state.job);
    const workers = new Set(jobs.flatMap((job) => job.workers));
    const servers = new Set(jobs.flatMap((job) => job.servers));
    const chosen = this.emphasis();
    const sums = new Map();
    for (const tree of chosenTrees(this.planner)) {
      for (const each of tree.aggregators) sums.set(each.node, [...(sums.get(each.node) || []), tree]);
    }
    this.sums = sums;
    const group = add(this.layer, "g", {class: "nodes"}).node();
    this.fabric.nodes.forEach((node, number) => {
      const box = this.boxes[number];
      if (box.x < -50 || box.x > this.width + 50) return;
      const role = servers.has(number) ? "server" : workers.has(number) ? "worker" : "idle-host";
      const kind = node.tier ? `switch ${node.ina ? "ina" : ""} ${sums.has(number) ? "sums" : ""}` : role;
      const round = node.tier ? Math.min(5, box.half / 3) : role === "server" ? 0 : box.half;
      const faded = chosen.some && !chosen.nodes.has(number) ? "faded" : "";
      shape(group, "rect", {
        class: `node ${kind} ${faded}`, "data-node": number, x: (box.x - box.half).toFixed(1), y: (box.y - box.tall).toFixed(1),
        width: (2 * box.half).toFixed(1), height: (2 * box.tall).toFixed(1), rx: round.toFixed(1),
      });
    });
  }

  /** Write names of nodes and rates of links where they fit. */
  drawLabels() {
    const group = add(this.layer, "g", {class: "labels", "aria-hidden": "true"});
    const taken = [];
    const free = (one) => taken.every((box) => one[0] > box[2] || one[2] < box[0] || one[1] > box[3] || one[3] < box[1]);
    this.fabric.nodes.forEach((node, number) => {
      const box = this.boxes[number];
      if (box.x < 0 || box.x > this.width) return;
      taken.push([box.x - box.half - 1, box.y - box.tall - 1, box.x + box.half + 1, box.y + box.tall + 1]);
      if (this.boxes.length < 3000) this.nameNode(group, node, number, box, taken, free);
    });
    this.labelLinks(group, taken, free);
  }

  /** The name of a node: inside a switch if it fits, below a host. A Σ for each tree that a switch sums. */
  nameNode(group, node, number, box, taken, free) {
    const wide = node.name.length * LETTER_PX;
    const trees = this.sums.get(number) || [];
    if (node.tier) {
      if (wide > 2 * box.half - 4) return;
      add(group, "text", {x: box.x, y: box.y + (trees.length && box.tall > 11 ? -1 : 4)}, node.name);
      const shown = trees.slice(0, Math.floor((2 * box.half) / 9));
      shown.forEach((tree, place) => {
        add(group, "text", {class: "sum", x: box.x + 9 * (place - (shown.length - 1) / 2), y: box.y + 11}, "Σ")
          .style("fill", state.show === "trees" ? treeColor(this.planner, tree) : "currentColor");
      });
      return;
    }
    const room = [box.x - wide / 2 - 3, box.y + box.tall + 3, box.x + wide / 2 + 3, box.y + box.tall + 15];
    if (!free(room)) return;
    taken.push(room);
    add(group, "text", {x: box.x, y: room[3] - 2}, node.name);
  }

  /** The rates of the most loaded links, each beside its line near the sender, if the place is free. */
  labelLinks(group, taken, free) {
    if (this.courses.size > 900 || state.show === "trees") return;
    const [size, unit] = this.rateUnit();
    const links = allLinks(this.run, this.planner).filter((facts) => this.courses.has(facts.number));
    const loaded = links.filter((facts) => this.loaded.has(facts.number) && (state.show === "deviation" ? facts.off !== null : shownRate(facts, this.planner) > 0));
    loaded.sort((one, other) => shownRate(other, this.planner) - shownRate(one, this.planner));
    this.unit = unit;
    for (const facts of loaded.slice(0, MOST_LABELS)) {
      const {a, b, bend} = this.courses.get(facts.number);
      if (bend) continue;
      const rate = shownRate(facts, this.planner);
      const text = state.show === "deviation" ? deviationText(facts.off) : +(rate / size).toPrecision(3);
      const wide = String(text).length * 5.2;
      const toHost = this.fabric.nodes[facts.to].tier === 0;
      const long = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
      const [right, down] = [-(b[1] - a[1]) / long, (b[0] - a[0]) / long];
      const aside = Math.abs(right) * (wide / 2 + 2) + Math.abs(down) * 6 + 2;
      for (const t of toHost ? [0.72, 0.62, 0.84, 0.38] : [0.28, 0.38, 0.16, 0.62, 0.72]) {
        const x = a[0] + t * (b[0] - a[0]) + right * aside;
        const y = a[1] + t * (b[1] - a[1]) + down * aside;
        const room = [x - wide / 2 - 1, y - 5, x + wide / 2 + 1, y + 5];
        if (room[0] < 0 || room[2] > this.width || !free(room) || this.crossed(x, y, wide, facts.number)) continue;
        taken.push(room);
        add(group, "text", {class: "load", x, y: y + 3}, text);
        break;
      }
    }
  }

  /** Whether the line of another link crosses the place of a label. */
  crossed(x, y, wide, own) {
    for (const number of this.loaded) {
      const {a, b} = this.courses.get(number);
      if (number !== own && d3.range(-0.5, 0.51, 0.25).some((part) => away2(x + part * wide, y, a, b) < 4)) return true;
    }
    return false;
  }

  /** The unit of the links' rates. */
  rateUnit() {
    return unitOf(d3.max(allLinks(this.run, this.planner), (facts) => shownRate(facts, this.planner)) || 1, RATE_UNITS);
  }

  /** The item at a point: a node, else the nearest link. */
  nearest([x, y]) {
    let best = null;
    let least = NEAR_PX;
    this.boxes.forEach((box, id) => {
      if (Math.abs(x - box.x) <= box.half + 2 && Math.abs(y - box.y) <= box.tall + 2) best = {kind: "node", id};
    });
    if (best) return best;
    for (const [id, {a, b, bend}] of this.courses) {
      const away = bend ? awayFromBend(x, y, a, b, bend) : away2(x, y, a, b);
      if (away < least) [least, best] = [away, {kind: "link", id}];
    }
    return best;
  }

  /** Show an item in the details and in a tooltip while the pointer is on it. */
  point(found) {
    if (JSON.stringify(found) !== JSON.stringify(state.pointed)) choose({pointed: found});
  }

  /** Mark the item under the pointer and the chosen item. */
  mark() {
    this.layer.selectAll(".mark").remove();
    for (const [what, thing] of [["chosen", state.selected], ["pointed", state.pointed]]) this.markOne(what, thing);
    this.tell();
  }

  /** Mark one item. */
  markOne(what, thing) {
    if (!thing) return;
    if (thing.kind === "link" && this.courses.has(thing.id)) {
      add(this.layer, "path", {class: `mark ${what}`, d: this.path(this.courses.get(thing.id))});
    }
    const box = thing.kind === "node" ? this.boxes[thing.id] : null;
    if (box) {
      add(this.layer, "rect", {class: `mark ${what}`, x: box.x - box.half - 3, y: box.y - box.tall - 3, rx: 4,
                               width: 2 * box.half + 6, height: 2 * box.tall + 6});
    }
  }

  /** The tooltip at the item under the pointer. */
  tell() {
    const thing = state.pointed;
    const course = thing && thing.kind === "link" ? this.courses.get(thing.id) : null;
    const box = thing && thing.kind === "node" ? this.boxes[thing.id] : null;
    this.tip.property("hidden", !course && !box);
    if (!course && !box) return;
    const [x, y] = course ? [(course.a[0] + course.b[0]) / 2, (course.a[1] + course.b[1]) / 2] : [box.x, box.y - box.tall];
    const facts = course ? linkFacts(this.run, this.planner, thing.id) : null;
    this.tip.text("");
    add(this.tip, "strong", {}, facts ? facts.name : this.fabric.nodes[thing.id].name);
    if (facts) add(this.tip, "span", {}, `planned ${rateText(facts.planned)}, measured ${rateText(facts.measured)}`);
    const wide = this.tip.node().offsetWidth;
    this.tip.style("left", `${Math.max(4, Math.min(this.width - wide - 4, x - wide / 2))}px`).style("top", `${Math.max(0, y - 52)}px`);
  }

  /** Move through nodes and links by keys. */
  key(event) {
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
    const now = state.pointed || state.selected || {kind: "node", id: 0};
    if (event.key in moves) this.point({kind: "node", id: this.neighbour(now, ...moves[event.key])});
    else if (event.key.toLowerCase() === "l") this.point(this.nextLink(now, event.shiftKey ? -1 : 1));
    else if (event.key === "Enter" || event.key === " ") choose({selected: now, pointed: now});
    else if (event.key === "Escape") choose({selected: null, pointed: null});
    else if (event.key === "+") this.zoomBy(1.8);
    else if (event.key === "-") this.zoomBy(1 / 1.8);
    else return;
    event.preventDefault();
  }

  /** The node beside or above another item. */
  neighbour(thing, across, up) {
    const nodes = this.fabric.nodes;
    const here = thing.kind === "node" ? thing.id : linkFacts(this.run, this.planner, thing.id).from;
    const tiers = [...new Set(nodes.map((node) => node.tier))].sort(d3.ascending);
    const tier = tiers[tiers.indexOf(nodes[here].tier) + up];
    const row = nodes.map((node, id) => id).filter((id) => nodes[id].tier === tier).sort((a, b) => nodes[a].x - nodes[b].x);
    if (!row.length) return here;
    if (across) return row[Math.max(0, Math.min(row.length - 1, row.indexOf(here) + across))];
    return row.reduce((best, id) => (Math.abs(nodes[id].x - nodes[here].x) < Math.abs(nodes[best].x - nodes[here].x) ? id : best));
  }

  /** The next directed link of the current node. */
  nextLink(thing, by) {
    const links = allLinks(this.run, this.planner);
    const node = thing.kind === "node" ? thing.id : this.linksOf === undefined ? links[thing.id].from : this.linksOf;
    this.linksOf = node;
    const own = links.filter((facts) => facts.from === node || facts.to === node).map((facts) => facts.number);
    const place = thing.kind === "link" ? own.indexOf(thing.id) + by : by > 0 ? 0 : own.length - 1;
    return {kind: "link", id: own[(place + own.length) % own.length]};
  }
}

/** The distance of a point from the line between two others. */
function away2(x, y, a, b) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const t = Math.max(0, Math.min(1, ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - a[0] - t * dx, y - a[1] - t * dy);
}

/** The distance of a point from a curved line. */
function awayFromBend(x, y, a, b, bend) {
  const points = d3.range(0, 1.01, 0.1).map((t) => [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]) - 4 * bend * t * (1 - t)]);
  return d3.min(d3.pairs(points), ([one, other]) => away2(x, y, one, other));
}

/** The legend of the drawing's colours. */
function fabricLegend(parent, drawing) {
  const legend = add(parent, "div", {class: "legend"});
  whenever(["show", "planner", "run", "job", "tree", "theme", "at"], () => {
    legend.text("");
    if (state.show === "trees") {
      const trees = chosenTrees(drawing.planner);
      trees.slice(0, 8).forEach((tree) => {
        const entry = add(legend, "span", {class: "key"});
        chip(entry, treeColor(drawing.planner, tree));
        add(entry, "span", {}, `job ${tree.job}, tree ${tree.number}`);
      });
      if (trees.length > 8) add(legend, "span", {}, `and ${trees.length - 8} more`);
    } else {
      const [low, high, scale] = state.show === "deviation"
        ? [`−${100 * DEVIATION_SHOWN} % or less`, `+${100 * DEVIATION_SHOWN} % or more`, deviationColor()]
        : ["0 %", "100 % of capacity", loadColor()];
      const [start, end] = [scale.domain()[0], scale.domain()[scale.domain().length - 1]];
      const bar = add(legend, "span", {class: "ramp"});
      add(bar, "span", {}, low);
      d3.range(12).forEach((n) => add(bar, "i").style("background", scale(start + ((end - start) * n) / 11)));
      add(bar, "span", {}, high);
      const what = {measured: "measured load", planned: "planned load", deviation: "measured relative to planned"}[state.show];
      add(legend, "span", {}, `${what}${state.show === "deviation" ? "" : `; numbers at links in ${drawing.rateUnit()[1]}`}`);
    }
    add(legend, "span", {}, "each direction of a link has its own line, on the right in its direction; Σ: the switch sums");
    for (const [kind, name] of [["worker", "worker"], ["server", "parameter server"], ["idle-host", "host without a job"]]) {
      const entry = add(legend, "span", {class: "key"});
      add(entry, "i", {class: `sign ${kind}`, "aria-hidden": "true"});
      add(entry, "span", {}, name);
    }
  });
}
