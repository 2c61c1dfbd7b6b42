// Plots, made of the tables that stand beside them: whoever does not see them reads the tables.

const shown = new Map(); // where a plot stands -> the plot, and the words of the table that it was made of

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) shown.get(target)?.chart.setSize({ width: widthOf(target), height: HEIGHT });
});

const HEIGHT = 200;

/* Draws what is new or has changed here, and lets go of what has left the page. */
export function plots(root) {
  if (typeof uPlot === "undefined") return; // the tables remain
  for (const place of shown.keys()) if (!place.isConnected) forget(place);
  for (const place of root.querySelectorAll("[data-plot]")) {
    const table = document.getElementById(place.dataset.plot);
    if (!table || shown.get(place)?.said === table.textContent) continue;
    forget(place);
    shown.set(place, { chart: drawn(place, table), said: table.textContent });
    resized.observe(place);
  }
}

function forget(place) {
  const had = shown.get(place);
  if (!had) return;
  had.chart.destroy();
  resized.unobserve(place);
  shown.delete(place);
}

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function widthOf(place) { return Math.max(240, place.clientWidth); }

function drawn(place, table) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const columns = heads.map((_, column) => [...table.tBodies[0].rows].map((row) =>
    Number(row.cells[column].dataset.time ?? row.cells[column].textContent)));
  const time = place.dataset.plot === "curve", count = columns[0].length;
  const colours = time ? ["--d", "--p"] : ["--d", "--p", "--omega", "--ink", "--soft"];
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const series = heads.slice(1).map((label, number) => ({
    label, stroke: colour(colours[number]), width: 2, points: { show: count < 30, size: 6 },
    dash: label === "∇L" ? [4, 4] : undefined,
  }));
  return new uPlot({
    legend: { live: false },
    width: widthOf(place), height: HEIGHT, cursor: { drag: { x: false, y: false } },
    scales: { x: time ? {} : { time: false, range: [0.7, Math.max(2, count) + 0.3] } },
    series: [{ label: time ? undefined : "#" }, ...series],
    axes: [time ? axis : { ...axis, incrs: [1, 2, 5, 10, 50] }, { ...axis, size: 40 }],
  }, columns, place);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const place of [...shown.keys()]) forget(place);
  plots(document);
});
