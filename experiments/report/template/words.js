"use strict";
// Numbers and verdicts in words: every number has its unit.

const RATE_UNITS = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];
const SIZE_UNITS = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const TIME_UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const NOTHING = "–";
const GOOD_VERDICTS = ["VALID", "HOLDS"];
const VERDICT_SIGNS = {VALID: "✓", HOLDS: "✓", "DOES NOT HOLD": "✕", OVERLOADED: "▲", WRONG: "✕", FAILED: "✕"};
const TREE_COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#9467BD", "#7F7F7F"];

/** A scale from a domain to a range, of numbers or of colours. */
function linear(domain, range) {
  return d3.scaleLinear().domain(domain).range(range);
}

/** A number with three or four significant digits. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 1000) return d3.format(",.0f")(value);
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.0995 || size === 0 ? 3 : 4);
}

/** The suitable unit of a list for a value. */
function unitOf(value, units) {
  return units.find(([size]) => Math.abs(value) >= size * 0.9995) || units[units.length - 1];
}

/** A value in its suitable unit, or in that of another value. */
function inUnit(value, units, like = value) {
  if (value === null || value === undefined) return NOTHING;
  if (value === 0 && like === 0) return `0 ${units[units.length - 1][1]}`;
  const [size, name] = unitOf(like || value, units);
  return `${digits(value / size).replace("-", "−")} ${name}`;
}

const rateText = (value, like) => inUnit(value, RATE_UNITS, like);
const sizeText = (value, like) => inUnit(value, SIZE_UNITS, like);
const timeText = (value, like) => (value === 0 && !like ? "0 s" : inUnit(value, TIME_UNITS, like));
const countText = (value) => (value === null || value === undefined ? NOTHING : d3.format(",.10~g")(value));
const counting = (value, noun) => `${+value.toFixed(1)} ${noun}${+value.toFixed(1) === 1 ? "" : "s"}`;
const ratioText = (value) => (value === null || value === undefined ? NOTHING : value.toFixed(2));
const shareText = (value) => (value === null || value === undefined ? NOTHING : `${(100 * value).toFixed(1)} %`);

/** The relative deviation of a measured from a planned value; infinite if the planned value is 0, null if unknown. */
function deviation(planned, measured) {
  if (planned === null || planned === undefined || measured === null || measured === undefined) return null;
  if (planned === 0) return measured === 0 ? 0 : Infinity;
  return measured / planned - 1;
}

/** A deviation in words, with its sign. */
function deviationText(value) {
  if (value === null || value === undefined) return NOTHING;
  if (value === Infinity) return "not planned";
  const text = Math.abs(100 * value).toFixed(1);
  return `${text === "0.0" ? "" : value > 0 ? "+" : "−"}${text} %`;
}

/** The figures of planners: their names and text formats. `better`: whether more (1) or less (-1) is better. */
const FIGURES = {
  sending_rate_bps: {name: "sending rate", text: rateText, better: 1},
  ps_ingress_bytes: {name: "PS ingress", text: sizeText, better: -1},
  communication_time_s: {name: "communication time", text: timeText, better: -1},
  aggregation_ratio: {name: "INA ratio", text: ratioText, better: 1},
  aggregated_bytes: {name: "aggregated", text: sizeText, better: 1},
  overhead_bytes: {name: "overhead", text: sizeText, better: -1},
  retransmissions: {name: "sent again", text: countText, better: -1},
};

/** A column's name in words, without the unit, which is in its values: "ps_ingress_bytes" is "PS ingress". */
function columnWords(name) {
  return name.replace(/_(bps|bytes|s)$/, "").replace(/_/g, " ").replace("ps ingress", "PS ingress").replace("gradient", "gradient size");
}
