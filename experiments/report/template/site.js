"use strict";
// A validated site: its verdict, its plans without failures, every single failure, and the effect on each job.

/** All sections of a site. */
function siteSections(parent, site) {
  verdictBox(parent, {verdict: site.verdict, meaning: siteMeaning(site), reasons: siteReasons(site)});
  const notes = [...site.left_out, ...site.planners.flatMap((each) => (each.said ? [`${each.planner}: ${each.said}`] : []))];
  if (notes.length) {
    const list = add(parent, "ul", {class: "notes"});
    notes.forEach((note) => add(list, "li", {}, note));
  }
  const planned = site.planners.filter((each) => each.failed === null);
  siteJobs(parent, site, planned);
  siteFits(parent, planned);
  siteFailures(parent, planned);
  siteRuns(parent, planned);
}

/** The meaning of the verdict, in words. */
function siteMeaning(site) {
  const network = `${countText(site.jobs.length)} job${site.jobs.length === 1 ? "" : "s"} on ${countText(site.switches)} switches and ${countText(site.links)} links, program ${site.program}`;
  return site.holds_with.length
    ? `The plans of ${site.holds_with.join(", ")} meet every requirement: ${network}.`
    : `No planner's plans meet every requirement: ${network}.`;
}

/** The reasons why the site does not hold; empty if it holds. */
function siteReasons(site) {
  if (site.holds_with.length) return [];
  return Object.entries(site.reasons).flatMap(([planner, reasons]) => reasons.map((reason) => `${planner}: ${reason}`));
}

/** The element of a list with the least value; null for an empty list. */
function leastBy(list, value) {
  return list.reduce((least, each) => (least === null || value(each) < value(least) ? each : least), null);
}

/** The effect on every job: its rate without failures, its lowest rate under a failure, and the failures that stop it. */
function siteJobs(parent, site, planned) {
  const made = section(parent, "jobs", "Effect of failures on jobs",
    "Rates are per worker. A failure that cuts off one of a job's hosts stops the job; the lowest rate is taken over the " +
    "failures under which it continues.");
  const rows = planned.flatMap((each) => site.jobs.map((job) => {
    const stops = each.failures.filter((failure) => failure.lost[job.number] !== undefined);
    const goesOn = each.failures.filter((failure) => failure.lost[job.number] === undefined);
    return {each, job, stops, worst: leastBy(goesOn, (failure) => failure.kept[job.number])};
  }));
  sortedTable(made, {
    label: "jobs", rows, first: null,
    columns: [
      {name: "job", value: ({job}) => `job ${job.number}`},
      {name: "planner", value: ({each}) => each.planner, color: ({each}) => each.color},
      {name: "workers", value: ({job}) => job.workers, text: ({job}) => countText(job.workers)},
      {name: "rate", value: ({each, job}) => each.rates_bps[job.number], text: ({each, job}) => rateText(each.rates_bps[job.number])},
      {name: "least rate", value: ({worst, job}) => (worst === null ? null : worst.rates_bps[job.number] || 0),
        text: ({worst, job}) => (worst === null ? NOTHING : rateText(worst.rates_bps[job.number] || 0))},
      {name: "of its rate", value: ({worst, job}) => (worst === null ? null : worst.kept[job.number]),
        text: ({worst, job}) => (worst === null ? NOTHING : shareText(worst.kept[job.number]))},
      {name: "when this fails", value: ({worst, job}) => (worst === null || worst.kept[job.number] >= 1 ? "" : worst.name)},
      {name: "stopped by", value: ({stops}) => namesText(stops.map((failure) => failure.name))},
    ],
  });
}

/** The first few of many names, and the number of others. */
function namesText(names) {
  const few = names.slice(0, 4).join(", ");
  return names.length > 4 ? `${few} and ${names.length - 4} more` : few;
}

/** The plans' use of the switches' chips. */
function siteFits(parent, planned) {
  const rows = planned.flatMap((each) => each.fits.flatMap((fit) => fit.needs.map((need) => ({each, fit, need}))));
  if (!rows.length) return;
  const made = section(parent, "fits", "Use of the chips by the plans",
    "For each limit, the largest need of any switch. Only the chip's compiler can tell whether the P4 program itself fits.");
  sortedTable(made, {
    label: "limits", rows, first: null, filter: false,
    columns: [
      {name: "limit", value: ({need}) => need.kind},
      {name: "planner", value: ({each}) => each.planner, color: ({each}) => each.color},
      {name: "chip", value: ({fit}) => fit.chip},
      {name: "at", value: ({need}) => need.where},
      {name: "needed", value: ({need}) => need.share, text: ({need}) => need.needed},
      {name: "has", value: ({need}) => need.share, text: ({need}) => need.has},
      {name: "share", value: ({need}) => need.share, text: ({need}) => shareText(need.share)},
    ],
  });
}

/** All single failures, the worst first. */
function siteFailures(parent, planned) {
  const rows = planned.flatMap((each) => each.failures.map((failure) => {
    const jobs = Object.keys(failure.kept).filter((job) => failure.lost[job] === undefined);
    return {each, failure, least: leastBy(jobs, (job) => failure.kept[job])};
  }));
  if (!rows.length) return;
  const made = section(parent, "failures", "Single failures",
    "Jobs that use the failed part get new routes; if this makes them slower, all jobs are replanned.");
  sortedTable(made, {
    label: "failures", rows, first: null,
    columns: [
      {name: "what fails", value: ({failure}) => `${failure.kind} ${failure.name}`},
      {name: "planner", value: ({each}) => each.planner, color: ({each}) => each.color},
      {name: "plan", value: ({failure}) => (failure.error === null ? failure.plan : `${failure.plan}: ${failure.error}`)},
      {name: "jobs stopped", value: ({failure}) => Object.entries(failure.lost).map(([job, why]) => `${job} (${why})`).join("; ")},
      {name: "least of a job's rate", value: ({failure, least}) => (least === null ? null : failure.kept[least]),
        text: ({failure, least}) => (least === null ? NOTHING : shareText(failure.kept[least]))},
      {name: "of job", value: ({failure, least}) => (least === null || failure.kept[least] >= 1 ? "" : least)},
    ],
  });
}

/** The runs in virtual time and the emulation: planned and measured rates of every job. */
function siteRuns(parent, planned) {
  const runs = planned.flatMap((each) => [
    ...Object.entries(each.virtual).map(([failure, run]) => ({each, run, world: "virtual time", failure})),
    ...(each.emulated === null ? [] : [{each, run: each.emulated, world: "emulation", failure: ""}]),
  ]);
  const rows = runs.flatMap(({each, run, world, failure}) => Object.entries(run.planned_bps || {}).map(([job, rate]) => (
    {each, run, world, failure, job, planned: rate, measured: run.verdict === "OVERLOADED" ? null : run.measured_bps[job]})));
  if (!rows.length) return;
  const made = section(parent, "runs", "Virtual time", "The plans without failures and under the worst failures, run at true rates; " +
    "emulations run at scaled rates.");
  sortedTable(made, {
    label: "runs", rows, first: null,
    columns: [
      {name: "job", value: ({job}) => `job ${job}`},
      {name: "planner", value: ({each}) => each.planner, color: ({each}) => each.color},
      {name: "in", value: ({world}) => world},
      {name: "what fails", value: ({failure}) => failure || "nothing"},
      {name: "verdict", value: ({run}) => run.verdict},
      {name: "planned rate", value: ({planned}) => planned, text: ({planned}) => rateText(planned)},
      {name: "measured", value: ({measured}) => measured, text: ({measured}) => (measured === null ? NOTHING : rateText(measured))},
      {name: "difference", value: ({planned, measured}) => deviation(planned, measured), bySize: true,
        text: ({planned, measured}) => deviationText(deviation(planned, measured))},
    ],
  });
}
