// Times in the viewer's zone, live parts, and keys. Without it, the pages show UTC and the moment of their load.
"use strict";
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const showTimes = (root) => {
  for (const each of root.querySelectorAll("time[data-ms]")) {
    const at = new Date(Number(each.dataset.ms));
    if (Number.isNaN(at.getTime())) continue;
    each.dateTime = at.toISOString();
    each.title = at.toISOString();
    each.textContent = dateTime.format(at);
  }
};
showTimes(document);
const zone = document.getElementById("zone");
if (zone) zone.textContent = `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`;

// A field of a time: shown in the viewer's zone, sent as milliseconds since 1970.
for (const field of document.querySelectorAll("input[type=datetime-local]")) {
  for (const each of document.querySelectorAll("[data-zone]")) each.textContent = "";
  if (field.dataset.ms) {
    const at = new Date(Number(field.dataset.ms));
    const local = new Date(at.getTime() - at.getTimezoneOffset() * 60000);
    if (!Number.isNaN(local.getTime())) field.value = local.toISOString().slice(0, 19);
  }
  field.form.addEventListener("formdata", (event) => {
    const at = new Date(field.value).getTime();
    if (!Number.isNaN(at)) event.formData.set(field.name, String(at));
  });
}

// An element with data-events gets its content from that address, while the page can be seen.
for (const each of document.querySelectorAll("[data-events]")) {
  let source = null;
  const follow = () => {
    if (document.hidden) {
      if (source) source.close();
      source = null;
      return;
    }
    if (source) return;
    source = new EventSource(each.dataset.events);
    source.addEventListener("part", (event) => {
      const focused = each.contains(document.activeElement) ? document.activeElement : null;
      const places = [...each.querySelectorAll("a, [tabindex]")];
      const place = places.indexOf(focused);
      const scrolled = [...each.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
      each.innerHTML = JSON.parse(event.data); // rendered and escaped by the server
      showTimes(each);
      [...each.querySelectorAll(".scroll")].forEach((box, index) => { box.scrollLeft = scrolled[index] || 0; });
      if (place >= 0) each.querySelectorAll("a, [tabindex]")[place]?.focus({ preventScroll: true });
      each.dataset.live = String(Number(each.dataset.live || 0) + 1);
    });
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}

// A button with data-tick ticks every box of its form, or none if all are ticked.
for (const each of document.querySelectorAll("[data-tick]")) {
  each.hidden = false;
  each.addEventListener("click", () => {
    const boxes = [...each.form.querySelectorAll("input[type=checkbox]")];
    const isOn = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = isOn;
  });
}

// "/" searches; "g" and a letter goes to a page.
let before = "";
const places = { c: "/", t: "/topics", g: "/groups", r: "/resets", l: "/races" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "/") {
    const field = document.querySelector("main input[type=search]");
    if (field) field.focus();
    else location.assign("/topics#q");
    event.preventDefault();
  } else if (before === "g" && places[event.key]) {
    location.assign(places[event.key]);
  }
  before = event.key;
});
if (location.hash === "#q") document.getElementById("q")?.focus();
