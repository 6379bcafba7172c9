"use strict";

// Verdicts: filters, and details that open below a row.

const claims = [...document.querySelectorAll(".claim")];
const filters = document.getElementById("filters");
const textOf = new Map(claims.map((claim) => [claim, claim.textContent.toLowerCase()]));

function filter() {
  const chosen = new FormData(filters);
  const outcomes = chosen.getAll("outcome");
  const words = chosen.get("text").toLowerCase().split(/\s+/);
  let shown = 0;
  for (const claim of claims) {
    const fits =
      (!chosen.get("figure") || claim.dataset.figure === chosen.get("figure")) &&
      outcomes.includes(claim.dataset.outcome) &&
      words.every((word) => textOf.get(claim).includes(word));
    claim.hidden = !fits;
    shown += fits;
  }
  document.getElementById("count").textContent = `${shown} of ${claims.length} statements`;
  document.getElementById("nothing").hidden = shown > 0;
}

function fold(claim, open) {
  claim.querySelector(".fold").setAttribute("aria-expanded", open);
  claim.querySelector(".more").hidden = !open;
}

function foldAll(open) {
  claims.forEach((claim) => fold(claim, open));
  const button = document.getElementById("unfold");
  button.setAttribute("aria-pressed", open);
  button.textContent = open ? "Close all details" : "Open all details";
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target?.classList.contains("claim")) return;
  if (target.hidden) {
    filters.reset();
    filter();
  }
  fold(target, true);
  target.scrollIntoView();
  target.querySelector(".fold").focus({ preventScroll: true });
}

filters.addEventListener("input", filter);
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("reset", () => setTimeout(filter));
for (const claim of claims) {
  const button = claim.querySelector(".fold");
  button.addEventListener("click", () => fold(claim, button.getAttribute("aria-expanded") === "false"));
}
const unfold = document.getElementById("unfold");
unfold.addEventListener("click", () => foldAll(unfold.getAttribute("aria-pressed") === "false"));
addEventListener("hashchange", openTarget);
addEventListener("beforeprint", () => foldAll(true));
foldAll(false);
filter();
openTarget();

// Graphs: drawn when they come near the screen, in the colours of the page, switched by the legend of their figure.

const dark = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)").matches;
const swaps = Object.entries(JSON.parse(document.getElementById("swaps").textContent));
const legends = new Map([...document.querySelectorAll(".legend")].map((legend) => [legend.dataset.of, legend]));

function inTheme(text) {
  // In one pass, so that no colour is replaced twice.
  if (!dark.matches) return text;
  const known = new Map(swaps);
  return text.replace(/#[0-9a-f]{6}|rgba\(\d+, \d+, \d+/g, (colour) => known.get(colour) ?? colour);
}

function draw(graph) {
  const spec = JSON.parse(inTheme(graph.nextElementSibling.textContent));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--grid"), linecolor: colour("--soft"), zerolinecolor: colour("--line"), automargin: true };
  const layout = spec.layout;
  for (const name of ["xaxis", "yaxis"]) layout[name] = { ...axis, ...layout[name] };
  Object.assign(layout, {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--text"), family: getComputedStyle(document.body).fontFamily, size: 12 },
    hoverlabel: { bgcolor: colour("--panel"), bordercolor: colour("--line"), font: { color: colour("--text") }, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--text") },
    // A finger that scrolls the page must not zoom.
    dragmode: coarse ? false : "zoom",
  });
  const off = hiddenKeys(graph.dataset.of);
  for (const trace of spec.data) trace.visible = !off.has(trace.meta?.key);
  return Plotly.react(graph, spec.data, layout, {
    responsive: true,
    displaylogo: false,
    displayModeBar: coarse ? true : "hover",
    modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  });
}

function hiddenKeys(figure) {
  const boxes = legends.get(figure)?.querySelectorAll("input:not(:checked)") ?? [];
  return new Set([...boxes].map((box) => box.value));
}

function isDrawn(graph) {
  return graph.classList.contains("js-plotly-plot");
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      draw(target);
    }
  },
  { rootMargin: "400px" },
);

function zoom(graph, factor, right = 0, up = 0) {
  const change = {};
  for (const [name, shift] of [["xaxis", right], ["yaxis", up]]) {
    const [a, b] = graph._fullLayout[name].range;
    const middle = (a + b) / 2 + shift * (b - a);
    const half = (factor * (b - a)) / 2;
    change[`${name}.range`] = [middle - half, middle + half];
  }
  Plotly.relayout(graph, change);
}

const KEYS = {
  "+": (graph) => zoom(graph, 0.8),
  "-": (graph) => zoom(graph, 1.25),
  ArrowLeft: (graph) => zoom(graph, 1, -0.1),
  ArrowRight: (graph) => zoom(graph, 1, 0.1),
  ArrowUp: (graph) => zoom(graph, 1, 0, 0.1),
  ArrowDown: (graph) => zoom(graph, 1, 0, -0.1),
  0: (graph) => draw(graph),
};

for (const graph of document.querySelectorAll(".graph")) {
  near.observe(graph);
  graph.addEventListener("keydown", (event) => {
    if (event.target !== graph || !KEYS[event.key] || !isDrawn(graph)) return;
    event.preventDefault();
    KEYS[event.key](graph);
  });
}

for (const [figure, legend] of legends) {
  legend.addEventListener("change", (event) => {
    for (const graph of document.querySelectorAll(`.graph[data-of="${figure}"]`)) {
      if (!isDrawn(graph)) continue;
      const traces = graph.data.flatMap((trace, i) => (trace.meta?.key === event.target.value ? [i] : []));
      if (traces.length) Plotly.restyle(graph, { visible: event.target.checked }, traces);
    }
  });
}

function recolour() {
  document.querySelectorAll("svg[data-colour]").forEach((svg) => (svg.style.color = inTheme(svg.dataset.colour)));
  document.querySelectorAll(".graph").forEach((graph) => isDrawn(graph) && draw(graph));
}
dark.addEventListener("change", recolour);
recolour();
