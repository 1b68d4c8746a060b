"use strict";
// Elements of the page, and the user's choices on it. Text is inserted as text only, so that no name becomes markup.

/** Add an element to a selection; attributes whose value is null are omitted. */
function add(parent, tag, attributes = {}, text = null) {
  const element = parent.append(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.attr(name, value);
  }
  return text === null ? element : element.text(text);
}

/** Add a shape to an element of an SVG. This has to be fast: a drawing has thousands of shapes. */
function shape(parent, tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) {
    if (attributes[name] !== null) made.setAttribute(name, attributes[name]);
  }
  return parent.appendChild(made);
}

/** A section of the page with its heading and a place in the list of contents. */
function section(parent, id, heading, about = null) {
  const made = add(parent, "section", {id, "aria-labelledby": `${id}-heading`});
  add(made, "h2", {id: `${id}-heading`}, heading);
  if (about) add(made, "p", {class: "about"}, about);
  return made;
}

/** A button that calls `act`. */
function button(parent, text, act, attributes = {}) {
  return add(parent, "button", {type: "button", ...attributes}, text).on("click", act);
}

/** A group of buttons of which one is pressed; returns a function that presses the button of a value. */
function choice(parent, label, options, act) {
  const group = add(parent, "div", {class: "choice", role: "group", "aria-label": label});
  add(group, "span", {class: "label", "aria-hidden": "true"}, label);
  const buttons = options.map(([value, text, color]) => {
    const made = button(group, null, () => act(value));
    if (color) add(made, "span", {class: "chip", "aria-hidden": "true"}).style("background", color);
    add(made, "span", {}, text);
    return [value, made];
  });
  return (chosen) => buttons.forEach(([value, made]) => made.attr("aria-pressed", String(value === chosen)));
}

/** A labelled list to choose from; returns a function that chooses a value. */
function selector(parent, label, options, act) {
  const field = add(parent, "label", {class: "field"});
  add(field, "span", {class: "label"}, label);
  const list = add(field, "select").on("change", function () { act(options[this.selectedIndex][0]); });
  options.forEach(([, text]) => add(list, "option", {}, text));
  return (chosen) => list.property("selectedIndex", Math.max(0, options.findIndex(([value]) => value === chosen)));
}

/** A name and its value in a list of facts. */
function fact(list, name, value) {
  add(list, "dt", {}, name);
  return add(list, "dd", {}, value);
}

/** A mark in a planner's colour. */
function chip(parent, color) {
  add(parent, "span", {class: "chip", "aria-hidden": "true"}).style("background", color);
}

const DRAWN_STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "fill-opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "display"];

/** An SVG of the page as a file of its own: what the page's style says is written into every element. */
function svgText(svg) {
  const copy = svg.cloneNode(true);
  const copies = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((element, place) => {
    const style = getComputedStyle(element);
    DRAWN_STYLES.forEach((name) => copies[place].setAttribute(name, style.getPropertyValue(name)));
    copies[place].removeAttribute("style");
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--surface");
  copy.insertBefore(copy.ownerDocument.createElementNS("http://www.w3.org/2000/svg", "rect"), copy.firstChild);
  for (const [name, value] of Object.entries({width, height, fill: paper})) copy.firstChild.setAttribute(name, value);
  for (const [name, value] of Object.entries({xmlns: "http://www.w3.org/2000/svg", width, height})) copy.setAttribute(name, value);
  return new XMLSerializer().serializeToString(copy);
}

/** Rows as CSV; cells with commas, quotes or line ends are quoted. */
function csvText(rows) {
  const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : String(value === null || value === undefined ? "" : value));
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/** Save a text as a file. */
function save(name, kind, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: kind}));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Buttons that save a chart as SVG and its data as CSV. `svgOf` gives its SVGs, `rowsOf` its rows, the headings first. */
function exportButtons(parent, title, svgOf, rowsOf) {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const tools = add(parent, "span", {class: "exports"});
  if (svgOf) {
    button(tools, "SVG", () => svgOf().forEach((svg, place) => save(`${name}${place ? `-${place + 1}` : ""}.svg`, "image/svg+xml", svgText(svg))),
      {"aria-label": `save ${title} as SVG`});
  }
  button(tools, "CSV", () => save(`${name}.csv`, "text/csv", csvText(rowsOf())), {"aria-label": `save ${title} as CSV`});
}

/** A verdict as a symbol and a word. */
function verdictMark(parent, verdict) {
  const mark = add(parent, "span", {class: `verdict ${GOOD_VERDICTS.includes(verdict) ? "good" : "bad"}`});
  add(mark, "span", {"aria-hidden": "true"}, `${VERDICT_SIGNS[verdict] || "?"} `);
  add(mark, "span", {}, verdict);
}

/** The choices: run, planner, job and tree (null is all), the links' figure, the time, and the item in the details. */
const state = {run: 0, planner: 0, job: null, tree: null, show: "measured", at: null, selected: null, pointed: null};
const listeners = [];

/** Call `act` with the names of the changed choices whenever one of `names` changes, and once now. */
function whenever(names, act) {
  listeners.push([names, act]);
  act();
}

/** Change choices. */
function choose(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  Object.assign(state, changes);
  for (const [names, act] of [...listeners]) {
    if (names.some((name) => changed.includes(name))) act();
  }
}
