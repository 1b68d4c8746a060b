"use strict";
// Elements of the page, and what is chosen on it. Text goes in as text only, so that no name is taken for markup.

/** Add an element to a selection; attributes whose value is null are left out. */
function add(parent, tag, attributes = {}, text = null) {
  const element = parent.append(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.attr(name, value);
  }
  return text === null ? element : element.text(text);
}

/** Add a shape to an element of an SVG, quickly: a drawing has thousands. */
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

/** A group of buttons of which one is pressed; returns a function that presses the one with a value. */
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

/** A row of name and value in a list of facts. */
function fact(list, name, value) {
  add(list, "dt", {}, name);
  return add(list, "dd", {}, value);
}

/** A mark of a planner's colour. */
function chip(parent, color) {
  add(parent, "span", {class: "chip", "aria-hidden": "true"}).style("background", color);
}

/** A verdict as a sign and a word. */
function verdictMark(parent, verdict) {
  const mark = add(parent, "span", {class: `verdict ${GOOD_VERDICTS.includes(verdict) ? "good" : "bad"}`});
  add(mark, "span", {"aria-hidden": "true"}, `${VERDICT_SIGNS[verdict] || "?"} `);
  add(mark, "span", {}, verdict);
}

/** What is chosen: run, planner, job and tree (null is all), what links show, the time, and the thing in the details. */
const state = {run: 0, planner: 0, job: null, tree: null, show: "measured", at: null, selected: null, pointed: null};
const listeners = [];

/** Call `act` with the names of what has changed whenever one of `names` changes, and once now. */
function whenever(names, act) {
  listeners.push([names, act]);
  act();
}

/** Choose something else. */
function choose(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  Object.assign(state, changes);
  for (const [names, act] of [...listeners]) {
    if (names.some((name) => changed.includes(name))) act();
  }
}
