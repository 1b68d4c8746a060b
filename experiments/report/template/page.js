"use strict";
// Opens the report: unpacks its document, builds its sections, and sets the theme.

/** The document, from the compressed text in the page. */
async function unpacked() {
  const text = atob(document.getElementById("data").textContent.trim());
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Set the theme, light or dark. The default is the system's theme. */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  choose({theme});
}

/** The title of the report, its origin, and the buttons for theme and printing. */
function pageHeader(header) {
  const line = add(header, "div", {class: "title-line"});
  const names = add(line, "div");
  add(names, "p", {class: "made-by"}, `${report.made_by} report${report.runs.length === 1 ? `: ${report.runs[0].title}` : ""}`);
  add(names, "h1", {}, report.title);
  const tools = add(line, "div", {class: "tools"});
  const theme = button(tools, "", () => setTheme(state.theme === "dark" ? "light" : "dark"), {id: "theme"});
  button(tools, "Print", () => window.print(), {id: "print"});
  whenever(["theme"], () => theme.text(state.theme === "dark" ? "Light theme" : "Dark theme"));
}

/** The list of contents. */
function contents(nav, main) {
  const list = add(nav, "ul");
  main.selectAll("section").each(function () {
    add(add(list, "li"), "a", {href: `#${this.id}`}, d3.select(this).select("h2").text());
  });
}

/** The runs of a report: verdicts, a summary of all planners, then one run at a time. */
function runsPage(main) {
  report.runs.forEach((run, place) => {
    if (report.runs.length > 1) add(main, "h2", {class: "run-name"}, `${place + 1}: ${run.title}, ${run.folder}`);
    verdictBox(main, run);
  });
  summarySection(main, report.runs);
  const holder = add(main, "div", {id: "run"});
  if (report.runs.length > 1) {
    const press = choice(main.insert("div", "#run").attr("class", "controls"), "Run below",
      report.runs.map((run, place) => [place, `${place + 1}: ${run.folder}`]), (run) => showRun(holder, report.runs[run], {run, planner: 0}));
    listeners.push([["run"], () => press(state.run)]);
    press(0);
  }
  showRun(holder, report.runs[0], {});
}

let kept = null;

/** Show the sections of a run instead of another run's. */
function showRun(holder, run, changes) {
  if (kept === null) kept = listeners.length;
  listeners.length = kept;
  holder.text("");
  choose({...changes, job: null, tree: null, at: null, selected: null, pointed: null});
  runSections(holder, run);
}

let report = null;

/** Build the page. */
async function openReport() {
  report = await unpacked();
  state.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = state.theme;
  const main = d3.select("#main");
  main.select("#opening").remove();
  const header = d3.select("#top");
  pageHeader(header);
  const nav = add(header, "nav", {"aria-label": "contents"});
  if (report.study) studySections(main, report.study);
  else if (report.site) siteSections(main, report.site);
  else if (report.schedule) scheduleSections(main, report.schedule);
  else runsPage(main);
  contents(nav, main);
  add(d3.select("body"), "footer").text(`Made by ${report.made_by}. This file needs no network and can be sent by mail.`);
  document.documentElement.dataset.ready = "yes";
}

openReport().catch((error) => {
  d3.select("#main").append("p").attr("role", "alert").text(`The report cannot be shown: ${error.message}`);
  throw error;
});
