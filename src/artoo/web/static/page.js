// artoo's page: follows streams, swaps what has changed, and draws a timeline of any length with some sixty rows.
// Everything that a model or a file said arrives as escaped HTML from the server or is set as text: never as markup.
"use strict";

const ROW = 28, PAGE = 200, KEPT_PAGES = 40, SPARE = 12;

/* --- what changes on a page: regions of the server's own HTML --------------------------------------------------- */

function live(holder) {
  const shown = new Map();
  for (const region of holder.querySelectorAll("[data-region]")) shown.set(region.dataset.region, region.innerHTML);
  let busy = false, again = false;
  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(holder.dataset.live, { headers: { accept: "text/html" } });
      if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // the connection is gone: the stream says so, and comes back
    } finally {
      busy = false;
      if (again) { again = false; setTimeout(refresh, 250); }
    }
  }
  function swap(fresh) {
    for (const region of fresh.querySelectorAll("[data-region]")) {
      const name = region.dataset.region, html = region.innerHTML;
      const old = holder.querySelector(`[data-region="${name}"]`);
      if (!old || shown.get(name) === html) continue;
      shown.set(name, html);
      const open = new Set([...old.querySelectorAll("details[open]")].map((each) => each.id));
      const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
      for (const each of region.querySelectorAll("details")) each.open = open.has(each.id);
      old.replaceChildren(...region.childNodes);
      if (focus) document.getElementById(focus)?.focus();
      plots(old);
    }
  }
  return refresh;
}

/* --- plots: made of the tables that stand beside them ------------------------------------------------------------ */

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function plots(root) {
  for (const place of root.querySelectorAll("[data-plot]")) {
    const table = document.getElementById(place.dataset.plot);
    if (!table || typeof uPlot === "undefined") continue;
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    const columns = heads.map((_, column) => [...table.tBodies[0].rows].map((row) =>
      Number(row.cells[column].dataset.time ?? row.cells[column].textContent)));
    const time = place.dataset.plot === "curve", colours = time ? ["--d", "--p"] : ["--d", "--p", "--omega", "--ink", "--soft"];
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const series = heads.slice(1).map((label, number) => ({
      label, stroke: colour(colours[number]), width: 2, points: { show: columns[0].length < 30, size: 6 },
      dash: label === "∇L" ? [4, 4] : undefined,
    }));
    const count = columns[0].length;
    const x = time ? {} : { time: false, range: [0.7, Math.max(2, count) + 0.3] };
    place.replaceChildren();
    new uPlot({
      legend: { live: false },
      width: Math.max(240, place.clientWidth), height: 200, cursor: { drag: { x: false, y: false } },
      scales: { x }, series: [{ label: time ? undefined : "#" }, ...series],
      axes: [time ? axis : { ...axis, incrs: [1, 2, 5, 10, 50] }, { ...axis, size: 40 }],
    }, columns, place);
  }
}

/* --- the timeline ------------------------------------------------------------------------------------------------- */

class Timeline {
  constructor(box) {
    this.box = box;
    this.spacer = box.querySelector(".spacer");
    this.total = { all: Number(box.dataset.count), short: Number(box.dataset.short) };
    this.view = "short";
    this.pages = { all: new Map(), short: new Map() };
    this.asked = new Set();
    this.pool = [];
    this.active = -1;
    this.atEnd = true;
    box.addEventListener("scroll", () => { this.atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - ROW; this.plan(); }, { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("click", (event) => {
      const row = event.target.closest(".event");
      if (row) { this.choose(Number(row.dataset.place)); this.open(); }
    });
    new ResizeObserver(() => this.plan()).observe(box);
    for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => this.show(button.dataset.view, -1));
    this.grow();
  }

  get count() { return this.total[this.view]; }

  show(view, place) {
    this.view = view;
    for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === view));
    this.active = place;
    this.grow();
    if (place >= 0) this.box.scrollTop = place * ROW;
    this.plan();
  }

  /* rows that came over the stream: [first, last], and their rows unless there are too many */
  take(message) {
    if (message.first > this.total.all) return false; // cannot be: then the whole page is asked for anew
    for (const row of message.rows) if (row.n >= this.total.all) this.put("all", row.n, row);
    this.total.all = Math.max(this.total.all, message.last + 1);
    this.box.dataset.count = this.total.all;
    this.shorten(message.short);
    return true;
  }

  shorten(short) {
    // The last entry may have been a run of quiet events that has grown.
    const last = Math.floor(Math.max(0, this.total.short - 1) / PAGE);
    for (const page of [last, Math.floor(Math.max(0, short - 1) / PAGE)]) this.pages.short.delete(page);
    this.total.short = short;
    this.grow();
  }

  put(view, place, row) {
    const number = Math.floor(place / PAGE), pages = this.pages[view];
    if (!pages.has(number)) pages.set(number, []);
    pages.get(number)[place % PAGE] = row;
  }

  row(place) { return this.pages[this.view].get(Math.floor(place / PAGE))?.[place % PAGE]; }

  grow() {
    const stay = this.atEnd;
    this.spacer.style.height = `${this.count * ROW}px`;
    const words = document.getElementById("timeline-count");
    words.textContent = words.dataset.words.replace("{count}", this.total.all.toLocaleString());
    if (stay) this.box.scrollTop = this.box.scrollHeight;
    this.plan();
  }

  plan() {
    if (this.planned) return;
    this.planned = requestAnimationFrame(() => { this.planned = 0; this.draw(); });
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - SPARE);
    const last = Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + SPARE);
    while (this.pool.length < last - first) this.pool.push(this.make());
    const missing = new Set();
    this.pool.forEach((element, number) => {
      const place = first + number;
      element.hidden = place >= last;
      if (element.hidden) return;
      const row = this.row(place);
      if (!row) missing.add(Math.floor(place / PAGE));
      this.fill(element, place, row);
    });
    if (missing.size) { clearTimeout(this.waiting); this.waiting = setTimeout(() => { for (const page of missing) this.fetch(page); }, 40); }
  }

  make() {
    const element = document.createElement("div");
    element.setAttribute("role", "option");
    for (const name of ["at", "role", "kind", "text"]) {
      const cell = document.createElement("span");
      cell.className = name;
      element.append(cell);
    }
    this.box.append(element);
    return element;
  }

  fill(element, place, row) {
    element.style.transform = `translateY(${place * ROW}px)`;
    const active = place === this.active;
    if (element.row === row && element.place === place && element.activeRow === active && row) return;
    Object.assign(element, { row, place, activeRow: active });
    element.id = `event-${place}`;
    element.dataset.place = place;
    element.dataset.n = row ? row.n : "";
    element.className = `event ${row ? (row.fold ? "fold" : row.tone) : ""} ${active ? "active" : ""}`;
    element.setAttribute("aria-selected", String(active));
    element.setAttribute("aria-setsize", this.count);
    element.setAttribute("aria-posinset", place + 1);
    const [at, role, kind, text] = element.children;
    at.textContent = row?.at ? new Date(row.at).toLocaleTimeString([], { hour12: false }) : "";
    role.textContent = row?.role ?? "";
    kind.textContent = row ? (row.fold ? "⋯" : row.kind) : "…";
    text.textContent = row ? (row.fold ? this.box.dataset.folded.replace("{count}", row.fold.toLocaleString()) : row.text) : "";
  }

  async fetch(page) {
    const view = this.view, key = `${view}${page}`;
    if (this.asked.has(key)) return;
    this.asked.add(key);
    try {
      const answer = await fetch(`${this.box.dataset.rows}?view=${view}&first=${page * PAGE}&count=${PAGE}`);
      if (!answer.ok) return;
      const found = await answer.json();
      this.pages[view].delete(page);
      found.rows.forEach((row, number) => this.put(view, page * PAGE + number, row));
      const pages = this.pages[view];
      while (pages.size > KEPT_PAGES) pages.delete(pages.keys().next().value);
      this.plan();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    } finally {
      this.asked.delete(key);
    }
  }

  key(event) {
    const whole = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: whole, PageUp: -whole, Home: -this.count, End: this.count };
    if (event.key === "Enter") this.open();
    else if (event.key in steps) this.choose(Math.min(this.count - 1, Math.max(0, (this.active < 0 ? this.firstSeen() - 1 : this.active) + steps[event.key])));
    else return;
    event.preventDefault();
  }

  firstSeen() { return Math.ceil(this.box.scrollTop / ROW); }

  choose(place) {
    this.active = place;
    const top = place * ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (top + ROW > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + ROW - this.box.clientHeight;
    this.box.setAttribute("aria-activedescendant", `event-${place}`);
    this.plan();
  }

  async open() {
    const row = this.row(this.active);
    if (!row) return;
    if (row.fold) { this.show("all", row.n); return; }
    const answer = await fetch(`${this.box.dataset.events}${row.n}?part`);
    if (!answer.ok) return;
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("detail-body").replaceChildren(...parsed.body.childNodes);
    document.getElementById("detail").showModal();
  }
}

/* --- streams ------------------------------------------------------------------------------------------------------- */

const SILENT_SECONDS = 40; // the server says something every 15 s: a stream that is silent for longer has died unheard

function follow(address, heard) {
  const source = new EventSource(address), offline = document.getElementById("offline");
  let last = Date.now();
  const again = () => { clearInterval(watch); source.close(); follow(heard.again(), heard); };
  const lost = () => {
    if (!offline) return;
    offline.hidden = false;
    offline.textContent = offline.dataset.words.replace("{number}", document.getElementById("timeline")?.dataset.count ?? "");
  };
  const watch = setInterval(() => { if (Date.now() - last > SILENT_SECONDS * 1000) { lost(); again(); } }, 5000);
  source.onopen = () => { last = Date.now(); if (offline) offline.hidden = true; };
  source.onerror = () => {
    lost();
    // A server that is gone for longer than a moment closes the stream for good: then it is opened anew.
    if (source.readyState === EventSource.CLOSED) { clearInterval(watch); setTimeout(again, 1000); }
  };
  for (const [name, hear] of Object.entries({ beat: () => {}, ...heard.events }))
    source.addEventListener(name, (event) => { last = Date.now(); hear(JSON.parse(event.data)); });
}

document.addEventListener("DOMContentLoaded", () => {
  const holders = [...document.querySelectorAll("[data-live]")], box = document.getElementById("timeline");
  plots(document);
  if (!holders.length) return;
  if (box) {
    const refresh = live(holders[0]);
    const timeline = new Timeline(box), place = () => `${box.dataset.stream}?after=${timeline.total.all - 1}`;
    let version = "";
    follow(place(), {
      again: place,
      events: {
        rows: (message) => { if (!timeline.take(message)) location.reload(); },
        state: (message) => { if (message.short !== timeline.total.short) timeline.shorten(message.short); if (message.version !== version) { version = message.version; refresh(); } },
      },
    });
  } else {
    const events = Object.fromEntries(holders.map((holder) => [holder.dataset.event ?? "state", live(holder)]));
    const place = () => holders[0].dataset.stream;
    follow(place(), { again: place, events });
  }
});
