// The page works without this: filter, choice of metric and folds are HTML and CSS.
// Here: the state in the address, sorting, the theme, and buttons.
"use strict";
(() => {
  const picks = [...document.querySelectorAll("#schemes input")];
  const count = document.getElementById("count");
  const names = (some) => some.map((p) => p.value);

  const state = () => new URLSearchParams(location.hash.slice(1));
  const remember = (change) => {
    const next = state();
    for (const [key, value] of Object.entries(change)) value ? next.set(key, value) : next.delete(key);
    const text = next.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%3D", "=");
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };

  // Schemes.
  const say = () => {
    const shown = picks.filter((p) => p.checked);
    const all = shown.length === picks.length;
    count.textContent = all ? `all ${picks.length} shown` : `${shown.length} of ${picks.length} shown`;
    document.body.classList.toggle("filtered", !all);
    document.getElementById("shown").textContent = names(shown).join(", ") || "none";
    return all ? "" : names(shown).join(",") || "none";
  };
  const pick = (chosen) => {
    for (const p of picks) p.checked = chosen(p.value);
    remember({ schemes: say() });
  };
  for (const p of picks) p.addEventListener("change", () => remember({ schemes: say() }));
  document.getElementById("all").addEventListener("click", () => pick(() => true));
  document.getElementById("none").addEventListener("click", () => pick(() => false));
  // A click on a scheme's name in a table shows it alone; another one shows all again.
  for (const name of document.querySelectorAll("main .name")) {
    name.title = "double-click: this scheme alone, or all again";
    name.addEventListener("dblclick", () => {
      const alone = picks.every((p) => p.checked === (p.value === name.textContent));
      pick((value) => alone || value === name.textContent);
    });
  }

  // Metric of the summary.
  for (const radio of document.querySelectorAll(".choice input")) {
    radio.addEventListener("change", () => remember({ metric: radio.value }));
  }

  // Sections: the address keeps both the place and the filter.
  const go = (id) => {
    const target = document.getElementById(id);
    if (!target) return;
    target.closest("details")?.setAttribute("open", "");
    target.scrollIntoView();
  };
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const id = link.getAttribute("href").slice(1);
      remember({ at: id });
      go(id);
      document.getElementById(id)?.focus({ preventScroll: true });
    });
  }
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const sections = new Map();
  for (const [id, link] of links) sections.set(document.getElementById(id)?.closest("section"), link);
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      sections.get(entry.target)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -75% 0px" });
  for (const section of sections.keys()) if (section) seen.observe(section);

  // Tables.
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const h of heads) h.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[column].dataset.v;
        const rows = [...body.rows].sort((a, b) => {
          if (column === 0) return a.cells[0].textContent.localeCompare(b.cells[0].textContent) * (down ? -1 : 1);
          // What does not apply stays last.
          if (key(a) === undefined || key(b) === undefined) return (key(a) === undefined) - (key(b) === undefined);
          return (key(a) - key(b)) * (down ? -1 : 1);
        });
        body.append(...rows);
      });
    });
  }

  // Theme: the system's until the reader chooses.
  const theme = document.getElementById("theme");
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = dark() ? "light theme" : "dark theme"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("headway-theme", root.dataset.theme); } catch { /* a page from a file may have no storage */ }
    label();
  });
  try { if (localStorage.getItem("headway-theme")) root.dataset.theme = localStorage.getItem("headway-theme"); } catch { /* as above */ }

  const restore = () => {
    const from = state();
    const chosen = from.get("schemes")?.split(",");
    for (const p of picks) p.checked = !chosen || chosen.includes(p.value);
    const radio = document.getElementById(`metric-${from.get("metric")}`);
    if (radio) radio.checked = true;
    say();
    // A plain #section, as the page without scripts would have it.
    go(from.get("at") ?? location.hash.slice(1));
  };
  addEventListener("hashchange", restore);
  document.body.classList.add("scripted");
  label();
  restore();
})();
