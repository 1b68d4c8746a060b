"use strict";
// Tables that can be sorted and filtered. Long tables show their first rows, and all rows on request.

const ROWS_AT_ONCE = 60;

/**
 * A table of `rows`. `columns`: {name, value, text, act}; `value` sorts, `text` is the text of a cell, `draw` fills a
 * cell instead, `act` makes it a button. `first`: the column of the initial order, by absolute value with `bySize`, the
 * greatest first; null keeps the order of the rows.
 */
function sortedTable(parent, {label, columns, rows, first = 0, filter = true, sortable = true}) {
  const box = add(parent, "div", {class: "table-box"});
  const view = {by: first, down: true, words: "", shown: ROWS_AT_ONCE};
  let status = null;
  if (filter) {
    const field = add(box, "label", {class: "field"});
    add(field, "span", {class: "label"}, `Filter ${label}`);
    add(field, "input", {type: "search", placeholder: "a name, such as edge1"}).on("input", function () {
      view.words = this.value.toLowerCase();
      view.shown = ROWS_AT_ONCE;
      fill();
    });
    status = add(field, "span", {class: "status", role: "status"});
  }
  const scroll = add(box, "div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label});
  const table = add(scroll, "table");
  const head = add(add(table, "thead"), "tr");
  const headings = columns.map((column, place) => {
    const cell = add(head, "th", {scope: "col", class: column.text === undefined ? null : "number"});
    if (!sortable) return cell.text(column.name);
    button(cell, column.name, () => {
      view.down = view.by === place ? !view.down : column.text !== undefined;
      view.by = place;
      fill();
    });
    return cell;
  });
  const body = add(table, "tbody");
  exportButtons(box, label, null, () => [columns.map((column) => column.name), ...rows.map((row) => columns.map((column) => column.value(row)))]);
  const more = filter ? button(box, "", () => { view.shown = Infinity; fill(); }, {class: "more"}) : null;

  /** The order of two rows: unknown values come last; columns with `bySize` compare absolute values. */
  function order(one, other) {
    const column = columns[view.by];
    const [a, b] = [one, other].map((row) => column.value(row)).map((v) => (column.bySize && v !== null ? Math.abs(v) : v));
    if (a === null || b === null) return (a === null) - (b === null);
    return (view.down ? -1 : 1) * (typeof a === "string" ? a.localeCompare(b, "en", {numeric: true}) : a - b);
  }

  /** Refill the body. */
  function fill() {
    const found = rows.filter((row) => !view.words || String(columns[0].value(row)).toLowerCase().includes(view.words));
    if (sortable && view.by !== null) found.sort(order);
    body.selectAll("tr").remove();
    for (const row of found.slice(0, view.shown)) fillRow(add(body, "tr"), row);
    headings.forEach((cell, place) => {
      cell.attr("aria-sort", sortable && place === view.by ? (view.down ? "descending" : "ascending") : null);
    });
    if (status) status.text(`${countText(found.length)} of ${countText(rows.length)}`);
    if (more) more.text(`Show all ${countText(found.length)} rows`).property("hidden", found.length <= view.shown);
  }

  /** The cells of a row; the first one is its heading. */
  function fillRow(line, row) {
    columns.forEach((column, place) => {
      const heading = place === 0;
      const kind = column.text === undefined ? null : "number";
      const cell = add(line, heading ? "th" : "td", {scope: heading ? "row" : null, class: kind});
      if (column.draw) {
        column.draw(cell, row);
        return;
      }
      const text = column.text ? column.text(row) : String(column.value(row));
      const holder = column.act ? button(cell, text, () => column.act(row), {class: "link"}) : cell.text(text);
      if (column.color) holder.insert("span", function () { return this.firstChild; }).attr("class", "chip").style("background", column.color(row));
      if (column.mark) cell.classed(column.mark(row), true);
    });
  }

  fill();
}
