"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  const one = (selector, from = document) => from.querySelector(selector);
  root.classList.add("js");

  // Light and dark: the reader's choice is kept where the browser allows it.
  const remember = (value) => { try { localStorage.setItem("interlock-theme", value); } catch { /* not allowed here */ } };
  const remembered = () => { try { return localStorage.getItem("interlock-theme"); } catch { return null; } };
  const wear = (theme) => { root.classList.remove("light", "dark"); if (theme) root.classList.add(theme); };
  const wish = new URLSearchParams(location.search).get("theme") || remembered();
  if (wish === "light" || wish === "dark") wear(wish);
  one("#theme").addEventListener("click", () => {
    const dark = root.classList.contains("dark") ||
      (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    wear(dark ? "light" : "dark");
    remember(dark ? "light" : "dark");
  });

  // A link to a closed part opens it.
  const open = (part) => { for (; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true; };
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.closest("[hidden]")) { one("#filter")?.reset(); dispatchEvent(new Event("unfilter")); }
    open(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const label = button.dataset.label || (button.dataset.label = button.textContent);
    const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = label; }, 1500); };
    const select = () => {
      open(source);
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      if (document.execCommand("copy")) done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(source.textContent).then(done, select);
    else select();
  });

  const form = one("#filter");
  if (!form) return;
  const shown = one("#shown");
  const rows = all(".rows li");
  const told = new Map(all("[data-case]").map((part) => [part.dataset.case, part]));
  const cards = new Map(all("[data-family]").map((part) => [part.dataset.family, part]));
  const number = new Intl.NumberFormat("en");
  const headings = new Map();
  let texts = null;

  // What is searched: the row, its cause without its tests, and what is told of the case in full.
  const heading = (row) => {
    const family = row.dataset.f;
    if (!headings.has(family)) {
      const card = cards.get(family);
      const parts = card ? all(":scope > :not(.members, .acts)", card) : all("h3", row.closest(".group"));
      headings.set(family, parts.map((part) => part.textContent).join(" ").toLowerCase());
    }
    return headings.get(family);
  };
  const text = (row) => {
    const full = told.get(row.dataset.n);
    return (full ? full.textContent : row.textContent).toLowerCase();
  };

  const apply = () => {
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = form.kind.value;
    const state = form.state.value;
    const active = words.length || kind || state;
    if (words.length && !texts) texts = rows.map((row) => text(row) + " " + heading(row));
    const counts = new Map();
    rows.forEach((row, at) => {
      const fits = (!kind || row.dataset.k === kind) && (!state || row.dataset.s === state) &&
        words.every((word) => texts[at].includes(word));
      row.hidden = !fits;
      const full = told.get(row.dataset.n);
      if (full) full.hidden = !fits;
      if (fits) counts.set(row.dataset.f, (counts.get(row.dataset.f) || 0) + 1);
    });
    cards.forEach((card, family) => {
      const found = counts.get(family) || 0;
      card.hidden = !found;
      const match = one(".match", card);
      match.hidden = !active;
      if (words.length && found) one(".members", card).open = true;
      match.textContent = number.format(found) + " shown";
    });
    all(".group").forEach((group) => { group.hidden = !counts.has(group.id.slice(5)); });
    const sum = Array.from(counts.values()).reduce((total, each) => total + each, 0);
    shown.textContent = active
      ? sum
        ? "Showing " + number.format(sum) + " of " + number.format(rows.length) + (rows.length === Number(shown.dataset.total) ? " failures in " : " listed failures in ") + number.format(counts.size) + (counts.size === 1 ? " cause." : " causes.")
        : "Nothing fits. Try other words, or all kinds and states."
      : "";
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  form.addEventListener("change", apply);
  addEventListener("unfilter", apply);
  const asked = new URLSearchParams(location.search);
  for (const name of ["q", "kind", "state"]) if (asked.get(name)) form[name].value = asked.get(name);
  apply();

  one("#open-all").addEventListener("click", (event) => {
    const open = event.target.getAttribute("aria-pressed") !== "true";
    all(".members").concat(...told.values()).forEach((part) => { if (!part.hidden) part.open = open; });
    event.target.setAttribute("aria-pressed", String(open));
    event.target.textContent = open ? "Close all" : "Open all";
  });
})();
