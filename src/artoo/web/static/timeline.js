// The timeline: a list of any length of which some sixty rows are there. A row is an element of its own for as long as
// it is near the window: it is never moved, never given to another event, and nothing leaves while a pointer is down.
// So what was pressed is what is opened, however much arrives meanwhile.

const ROW = 28, PAGE = 200, KEPT_PAGES = 40, SPARE = 12, ASK_AFTER = 40, AGAIN_AFTER = 1000;

/* The rows of one view that the browser has: so many pages and no more, the latest to come. */
class Rows {
  constructor() { this.pages = new Map(); this.outdated = new Set(); }

  get(place) { return this.pages.get(Math.floor(place / PAGE))?.[place % PAGE]; }

  put(place, row) {
    const number = Math.floor(place / PAGE);
    if (!this.pages.has(number)) this.replace(number, []);
    this.pages.get(number)[place % PAGE] = row;
  }

  replace(number, rows) {
    this.pages.delete(number);
    this.pages.set(number, rows);
    while (this.pages.size > KEPT_PAGES) this.pages.delete(this.pages.keys().next().value);
  }

  // Whether this place's page has to be asked for: it is not there, or it has changed since it came.
  lacks(place) { return !this.get(place) || this.outdated.has(Math.floor(place / PAGE)); }
}

export class Timeline {
  constructor(box, { lost }) {
    this.box = box;
    this.lost = lost;
    this.spacer = box.querySelector(".spacer");
    this.total = { all: Number(box.dataset.count), short: Number(box.dataset.short) };
    this.view = "short";
    this.rows = { all: new Rows(), short: new Rows() };
    this.asked = new Map();
    this.drawn = new Map(); // place in this view -> its element
    this.active = -1;
    this.atEnd = true;
    this.pressed = false;
    this.listen();
    this.grow();
  }

  listen() {
    this.box.addEventListener("scroll", () => {
      this.atEnd = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - ROW;
      this.plan();
    }, { passive: true });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("pointerdown", (event) => { this.pressed = event.target.closest(".event") !== null; });
    for (const name of ["pointerup", "pointercancel", "blur"]) window.addEventListener(name, () => { this.pressed = false; this.plan(); });
    this.box.addEventListener("click", (event) => {
      const row = event.target.closest(".event");
      if (row) { this.choose(Number(row.dataset.place)); this.open(); }
    });
    new ResizeObserver(() => this.plan()).observe(this.box);
    for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => this.show(button.dataset.view, -1));
  }

  get count() { return this.total[this.view]; }

  show(view, place) {
    for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === view));
    if (view !== this.view) for (const element of this.drawn.values()) element.remove();
    if (view !== this.view) this.drawn.clear();
    this.view = view;
    this.active = place;
    this.grow();
    if (place >= 0) { this.atEnd = false; this.box.scrollTop = place * ROW; }
    this.plan();
  }

  /* rows that came over the stream: [first, last], and their rows unless there are too many */
  take(message) {
    if (message.first > this.total.all) return false; // cannot be: then the whole page is asked for anew
    for (const row of message.rows) if (row.n >= this.total.all) this.rows.all.put(row.n, row);
    this.total.all = Math.max(this.total.all, message.last + 1);
    this.box.dataset.count = this.total.all;
    this.shorten(message.short);
    return true;
  }

  // The short view has grown; its last entry may have been a run of quiet events that is longer now.
  shorten(short) {
    for (const count of [this.total.short, short]) this.rows.short.outdated.add(Math.floor(Math.max(0, count - 1) / PAGE));
    this.total.short = short;
    this.grow();
  }

  grow() {
    const words = document.getElementById("timeline-count");
    words.textContent = words.dataset.words.replace("{count}", this.total.all.toLocaleString());
    this.spacer.style.height = `${this.count * ROW}px`;
    this.plan();
  }

  plan() {
    if (this.planned) return;
    this.planned = requestAnimationFrame(() => { this.planned = 0; this.draw(); });
  }

  draw() {
    if (this.atEnd && !this.pressed) this.box.scrollTop = this.box.scrollHeight;
    const places = this.near();
    const kept = new Set(places), missing = new Set();
    if (!this.pressed) for (const [place, element] of this.drawn) if (!kept.has(place)) { element.remove(); this.drawn.delete(place); }
    let after = null; // in the document's order too, for whoever does not see where they stand
    for (const place of places.reverse()) {
      if (!this.drawn.has(place)) this.drawn.set(place, this.box.insertBefore(made(place), after));
      after = this.drawn.get(place);
      this.fill(after, place);
      if (this.rows[this.view].lacks(place)) missing.add(Math.floor(place / PAGE));
    }
    if (missing.size) { clearTimeout(this.waiting); this.waiting = setTimeout(() => { for (const page of missing) this.fetch(page); }, ASK_AFTER); }
  }

  /* The places in and around the window, ascending; the chosen one is always there, for the list names it. */
  near() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - SPARE);
    const last = Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + SPARE);
    const places = Array.from({ length: Math.max(0, last - first) }, (_, number) => first + number);
    if (this.active >= last) places.push(this.active);
    else if (this.active >= 0 && this.active < first) places.unshift(this.active);
    return places;
  }

  fill(element, place) {
    const row = this.rows[this.view].get(place) ?? element.row, active = place === this.active;
    if (element.count !== this.count) { element.count = this.count; element.setAttribute("aria-setsize", this.count); }
    if (row && element.row === row && element.activeRow === active) return;
    Object.assign(element, { row, activeRow: active });
    element.dataset.n = row ? row.n : "";
    element.className = `event ${row ? (row.fold ? "fold" : row.tone) : ""} ${active ? "active" : ""}`;
    element.setAttribute("aria-selected", String(active));
    const [at, role, kind, text] = element.children;
    at.textContent = row?.at ? new Date(row.at).toLocaleTimeString([], { hour12: false }) : "";
    role.textContent = row?.role ?? "";
    kind.textContent = row ? (row.fold ? "⋯" : row.kind) : "…";
    text.textContent = row ? (row.fold ? this.box.dataset.folded.replace("{count}", row.fold.toLocaleString()) : row.text) : "";
  }

  /* Resolves when the page is there, or cannot be had now. Asked once, whoever waits for it. */
  fetch(page) {
    const view = this.view, key = `${view}${page}`;
    if (!this.asked.has(key)) {
      this.asked.set(key, this.ask(view, page).then((had) => {
        this.asked.delete(key);
        if (had) { this.plan(); return; }
        this.rows[view].outdated.add(page);
        this.lost();
        setTimeout(() => this.plan(), AGAIN_AFTER);
      }));
    }
    return this.asked.get(key);
  }

  async ask(view, page) {
    this.rows[view].outdated.delete(page);
    try {
      const answer = await fetch(`${this.box.dataset.rows}?view=${view}&first=${page * PAGE}&count=${PAGE}`);
      if (answer.ok) this.rows[view].replace(page, (await answer.json()).rows);
      return answer.ok;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      return false;
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

  /* Opens the chosen event, also one whose row has not come yet. */
  async open() {
    const place = this.active, rows = this.rows[this.view];
    if (place < 0) return;
    if (!rows.get(place)) await this.fetch(Math.floor(place / PAGE));
    const row = rows.get(place);
    if (!row || place !== this.active || rows !== this.rows[this.view]) return;
    if (row.fold) this.show("all", row.n);
    else await this.detail(`${this.box.dataset.events}${row.n}`);
  }

  async detail(address) {
    try {
      const answer = await fetch(`${address}?part`);
      if (!answer.ok) { location.assign(address); return; } // that page says what is wrong
      const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.getElementById("detail-body").replaceChildren(...parsed.body.childNodes);
      const dialog = document.getElementById("detail");
      if (!dialog.open) dialog.showModal();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.lost();
    }
  }
}

function made(place) {
  const element = document.createElement("div");
  element.setAttribute("role", "option");
  element.id = `event-${place}`;
  element.dataset.place = place;
  element.setAttribute("aria-posinset", place + 1);
  element.style.transform = `translateY(${place * ROW}px)`;
  for (const name of ["at", "role", "kind", "text"]) {
    const cell = document.createElement("span");
    cell.className = name;
    element.append(cell);
  }
  return element;
}
