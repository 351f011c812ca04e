// The window's script: live regions, keys, confirmation, sliders. Pages can be read without it.
// Texts from outside go into pages by textContent only.

const root = document.documentElement;
const body = document.body;
root.classList.add("js");
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const one = (selector, from = document) => from.querySelector(selector);

// Ages go on by themselves.
function formatAge(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${seconds} s`;
}
let skew = 0; // between this clock and the server's
function tickAges() {
  const now = Date.now() / 1000 - skew;
  for (const each of all("time[data-age]")) {
    const text = formatAge(now - Number(each.dataset.age));
    if (each.textContent !== text) each.textContent = text;
  }
}
setInterval(() => { if (!document.hidden) tickAges(); }, 1000);

// What a person is in the middle of is not replaced under their hands.
function isBusyIn(element) {
  const active = document.activeElement;
  if (one("dialog[open]") || (element.contains(active) && /^(INPUT|TEXTAREA|SELECT)$/.test(active.tagName))) return true;
  return all("input", element).some((each) => each.checked !== each.defaultChecked || each.value !== each.defaultValue);
}

// Parts of the page that are read anew, as the server renders them.
const shown = new WeakMap();
async function refresh() {
  if (!one("[data-refresh]")) return;
  let text;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    text = await answer.text();
  } catch { return; }
  const fresh = new DOMParser().parseFromString(text, "text/html");
  if (!all("[data-refresh]").some((old) => fresh.getElementById(old.id))) { location.reload(); return; } // another page by now
  for (const old of all("[data-refresh]")) {
    const now = fresh.getElementById(old.id);
    const seen = now?.innerHTML.replace(/(<time[^>]*>)[^<]*/g, "$1"); // ages go on by themselves
    if (!now || seen === shown.get(old) || isBusyIn(old)) continue;
    const open = new Map(all("details[data-keep]", old).map((each) => [each.dataset.keep, each.open]));
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceChildren(...now.childNodes);
    shown.set(old, seen);
    for (const each of all("details[data-keep]", old)) {
      if (open.has(each.dataset.keep)) each.open = open.get(each.dataset.keep);
    }
    if (focused) all("a[href]", old).find((each) => each.getAttribute("href") === focused)?.focus();
  }
  tickAges();
}
let refreshTimer = 0, lastRefresh = 0;
function refreshSoon(gap) {
  if (refreshTimer) return;
  // A little chance keeps many browsers from asking all at once.
  const wait = Math.max(0, lastRefresh + gap - Date.now()) + (lastRefresh ? Math.random() * gap * 0.5 : 0);
  refreshTimer = setTimeout(() => {
    refreshTimer = 0;
    lastRefresh = Date.now();
    if (document.hidden) { missed = true; return; }
    refresh();
  }, wait);
}

// A place of the circuit shows its ways, and filters the cases that stand there.
document.addEventListener("pointerover", (event) => {
  const map = one("[data-map]");
  if (!map) return;
  const from = event.target.closest?.("[data-map] [data-to], [data-map] [data-place]");
  const to = new Set(from ? [from, ...all("[data-to]", from)].map((each) => each.dataset.to) : []);
  for (const place of all("[data-place]", map)) place.classList.toggle("lit", to.has(place.dataset.place));
});
document.addEventListener("click", (event) => {
  const name = event.target.closest?.("[data-map] [data-place]")?.dataset.place;
  const select = one("#step");
  if (!name || !select) return;
  for (const each of [select, one("#state")]) {
    if ([...each.options].some((option) => option.value === name)) {
      each.value = name;
      each.form.requestSubmit();
      return;
    }
  }
});

const formatNumber = (number) => number.toLocaleString("en-US");
let waiting = null, missed = false;
function take(data) {
  if (document.hidden) { missed = true; return; }
  setState(data.problem ? "off" : "on", data.problem || "live");
  const before = waiting;
  if (data.waiting !== undefined && data.waiting !== waiting) {
    waiting = data.waiting;
    for (const each of all('[data-live="waiting"]')) {
      each.hidden = !waiting;
      each.firstChild.nodeValue = String(waiting);
    }
    for (const each of all('[data-live="waiting-tile"]')) each.textContent = formatNumber(waiting);
    if (before !== null) for (const each of all("[data-stale]")) each.hidden = false;
  }
  const { runPage, follows } = body.dataset;
  const concerns = runPage ? runPage in data.runs : Object.values(data.runs).some((circuit) => !follows || circuit === follows);
  if (data.fresh) refreshSoon(500);
  else if (concerns || (!runPage && before !== null && waiting !== before)) refreshSoon(runPage ? 800 : 1500);
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && missed) { missed = false; refresh(); }
});

// What the journal does not tell of, such as files, is looked at now and then.
if (body.dataset.every) setInterval(() => refreshSoon(1000), Number(body.dataset.every) * 1000);

function setState(state, text) {
  const place = one('[data-live="state"]');
  if (!place) return;
  if (place.dataset.state !== state) place.dataset.state = state;
  if (place.textContent !== text) place.textContent = text;
}

// One stream per browser: the tab that holds the lock listens, and tells the others.
function live() {
  if (!one('[data-live="state"]') || !("EventSource" in window)) return;
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("interlock-live") : null;
  channel?.addEventListener("message", (event) => take(event.data));
  let seen = body.dataset.position ?? "";
  const listen = () => new Promise((done) => {
    let source;
    const connect = () => {
      source = new EventSource(`/live?from=${encodeURIComponent(seen)}`);
      source.onmessage = (event) => {
        seen = event.lastEventId || seen;
        const data = JSON.parse(event.data);
        take(data);
        channel?.postMessage(data);
      };
      source.onerror = () => {
        setState("off", "connection lost, trying again");
        // After a refusal, such as that of a server which is closing, a browser gives up by itself.
        if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000 + Math.random() * 2000);
      };
    };
    connect();
    window.addEventListener("pagehide", () => { source.close(); done(); }, { once: true });
  });
  if (channel && navigator.locks) navigator.locks.request("interlock-live", listen);
  else listen();
  setState("on", "live");
}
live();
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// Answers: a button is pressed, or a key chooses one; then a second key or press confirms.
const confirmDialog = one("#confirm");
let chosen = null;
function ask(button) {
  const form = button.form, question = button.closest("[data-question]");
  const family = one('select[name="family"]', form);
  const scope = family ? ` It is for ${family.selectedOptions[0].textContent}.` : "";
  const title = one("h2", question).textContent.trim();
  const note = one('textarea[name="note"]', form)?.value.trim();
  one("#confirm-title").textContent = `Answer “${button.value}”?`;
  one("[data-confirm-text]").textContent = `Question ${question.dataset.question}: ${title.slice(0, 200)}.${scope}${note ? ` Comment: ${note.slice(0, 200)}` : ""}`;
  const yes = one("[data-confirm-yes]");
  yes.textContent = `Answer ${button.value}`;
  chosen = button;
  confirmDialog.returnValue = "";
  confirmDialog.showModal();
  yes.focus();
}
if (confirmDialog) {
  for (const form of all("form[data-answer]")) {
    form.addEventListener("submit", (event) => {
      const button = event.submitter;
      if (!button || button.dataset.confirmed || button.name !== "decision") return;
      event.preventDefault();
      ask(button);
    });
  }
  confirmDialog.addEventListener("close", () => {
    const button = chosen;
    chosen = null;
    if (!button) return;
    if (confirmDialog.returnValue !== "yes") { button.closest("[data-question]").focus(); return; }
    button.dataset.confirmed = "1";
    button.form.requestSubmit(button);
    for (const each of all("button", button.form)) setTimeout(() => { each.disabled = true; });
  });
}

// Keys
const items = () => (body.dataset.page === "inbox" ? all("[data-question]") : all("tbody tr, .list > li").filter((each) => one("a[href]", each)));
let selected = -1;
function select(step) {
  const list = items();
  if (!list.length) return;
  selected = Math.min(list.length - 1, Math.max(0, selected + step));
  for (const each of list) each.classList.toggle("chosen", each === list[selected]);
  const target = list[selected].matches("[data-question]") ? list[selected] : one("a", list[selected]);
  target?.focus({ preventScroll: true });
  list[selected].scrollIntoView({ block: "nearest" });
}
let going = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat && !"jk".includes(event.key)) return;
  if (one("dialog[open]") || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const key = event.key;
  if (going) {
    going = false;
    const link = all("nav a[data-key]").find((each) => each.dataset.key === key);
    if (link) { event.preventDefault(); location.href = link.href; }
    return;
  }
  if (key === "g") { going = true; setTimeout(() => { going = false; }, 1500); }
  else if (key === "j") select(1);
  else if (key === "k") select(-1);
  else if (key === "/") { const search = one('input[type="search"]'); if (search) { event.preventDefault(); search.focus(); search.select(); } }
  else if (key === "?") one("#keys")?.showModal();
  else if (body.dataset.page === "inbox" && confirmDialog) {
    const list = items();
    const question = list[selected] ?? (list.length === 1 ? list[0] : null);
    const button = question && all("button[data-key]", question).find((each) => each.dataset.key === key);
    if (button) { event.preventDefault(); ask(button); }
  }
});

// Sliders replay in place.
const whatIf = one("form[data-whatif]");
if (whatIf) {
  let timer = 0, running = null;
  const replay = async () => {
    running?.abort();
    running = new AbortController();
    const address = `${location.pathname}?${new URLSearchParams(new FormData(whatIf))}`;
    try {
      const answer = await fetch(address, { signal: running.signal });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("whatif");
      if (fresh) one("#whatif").replaceChildren(...fresh.childNodes);
      history.replaceState(null, "", address);
    } catch { /* another slide came first, or the server is away */ }
  };
  for (const range of all("[data-range]", whatIf)) {
    const number = one("[data-number]", range.parentElement);
    range.hidden = false;
    range.addEventListener("input", () => { number.value = range.value; number.dispatchEvent(new Event("input", { bubbles: true })); });
    number.addEventListener("input", () => { range.value = number.value; });
  }
  whatIf.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(replay, 180); });
  whatIf.addEventListener("submit", (event) => { event.preventDefault(); replay(); });
}
