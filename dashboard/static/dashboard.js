// Times in the viewer's zone, and live parts: an element with data-events gets its content from that address.
"use strict";
const showTimes = (root) => {
  for (const each of root.querySelectorAll("time[data-ms]")) {
    const at = new Date(Number(each.dataset.ms));
    each.dateTime = at.toISOString();
    each.textContent = at.toLocaleString();
  }
};
showTimes(document);
for (const each of document.querySelectorAll("[data-events]")) {
  new EventSource(each.dataset.events).addEventListener("part", (event) => {
    each.innerHTML = JSON.parse(event.data); // rendered and escaped by the server
    showTimes(each);
  });
}
