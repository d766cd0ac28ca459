// Keeps the live part of a page fresh: a tick of the stream says that something
// moved, and the part is fetched again. Without this script the page works, and
// a reload does the same.
(() => {
  "use strict";
  const part = document.getElementById("live");
  const state = document.getElementById("live-state");
  if (!part || !window.EventSource) return;
  let fetching = false, again = false, last = "", timer = 0;

  const refresh = async () => {
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      const answer = await fetch(location.href, { headers: { "X-Fragment": "live" }, cache: "no-store" });
      if (answer.ok) show(await answer.text());
    } catch { /* the stream says when the server is back */ }
    fetching = false;
    if (again) { again = false; later(); }
  };
  const show = (html) => {
    if (html === last) return;
    last = html;
    // What has the focus, and how far a region is scrolled, stays.
    const focus = document.activeElement && part.contains(document.activeElement) ? document.activeElement : null;
    const id = focus && focus.id, region = focus && focus.getAttribute("aria-label");
    const scrolled = [...part.querySelectorAll(".wide")].map((e) => [e.scrollLeft, e.scrollTop]);
    part.innerHTML = html; // escaped by the server
    [...part.querySelectorAll(".wide")].forEach((e, n) => { if (scrolled[n]) [e.scrollLeft, e.scrollTop] = scrolled[n]; });
    const back = (id && document.getElementById(id)) ||
      (region && [...part.querySelectorAll("[aria-label]")].find((e) => e.getAttribute("aria-label") === region));
    if (back) back.focus({ preventScroll: true });
  };
  const later = () => {
    if (timer || document.hidden) return;
    timer = setTimeout(() => { timer = 0; refresh(); }, 300);
  };
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };

  const root = document.querySelector('script[src$="app.js"]').src.replace("static/app.js", "");
  const stream = new EventSource(root + "live");
  stream.onopen = () => say("live");
  stream.onmessage = later;
  stream.onerror = () => say("not live");
  document.addEventListener("visibilitychange", later);

  // "/" goes to the search, as in other tools: when it is let go, so that it is
  // not typed.
  const slash = (e) => e.key === "/" && document.getElementById("q") && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  document.addEventListener("keydown", (e) => { if (slash(e)) e.preventDefault(); });
  document.addEventListener("keyup", (e) => { if (slash(e)) document.getElementById("q").focus(); });
})();
