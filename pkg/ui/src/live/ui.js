// Makes pages more comfortable: they renew themselves, texts can be copied, graphs can be zoomed.
"use strict";

const root = document.body.dataset.root;
let shown = "";

// Renews the main part when the cluster changes. Focus and what is open stay.
async function renew(main) {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return false;
  const text = await answer.text();
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
  if (!fresh) return false;
  if (fresh.innerHTML === shown) return true;
  shown = fresh.innerHTML;
  const open = new Map([...main.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  const links = (part) => [...part.querySelectorAll("a, summary, button, [tabindex]")];
  const focus = links(main).indexOf(document.activeElement);
  for (const one of fresh.querySelectorAll("details[id]")) {
    if (open.has(one.id)) one.open = open.get(one.id);
  }
  main.replaceChildren(...document.adoptNode(fresh).childNodes);
  if (focus >= 0) links(main)[focus]?.focus({ preventScroll: true });
  improve(main);
  return true;
}

function watch(main, status) {
  let busy = false;
  let again = false;
  const events = new EventSource(`${root}events`);
  const change = async () => {
    again = busy;
    if (busy) return;
    busy = true;
    do {
      again = false;
      const renewed = await renew(main).catch(() => false);
      status.textContent = renewed ? "This page follows the cluster." : "The page could not be renewed.";
    } while (again);
    busy = false;
  };
  events.addEventListener("change", change);
  events.addEventListener("open", () => { status.textContent = "This page follows the cluster."; });
  events.addEventListener("error", () => { status.textContent = "No connection: the page may be out of date."; });
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", () => act(made));
  return made;
}

// Adds buttons to copy texts and to zoom graphs.
function improve(part) {
  for (const text of part.querySelectorAll("pre.copy")) {
    text.before(button("Copy", async (made) => {
      const copied = await navigator.clipboard.writeText(text.textContent).then(() => true, () => false);
      made.textContent = copied ? "Copied" : "Not copied";
      setTimeout(() => { made.textContent = "Copy"; }, 2000);
    }));
  }
  for (const image of part.querySelectorAll(".paper img")) {
    const zoom = (factor) => () => {
      image.width = Math.min(20000, Math.max(100, Math.round(image.width * factor)));
    };
    const tools = document.createElement("p");
    tools.append(button("Zoom in", zoom(1.25)), button("Zoom out", zoom(0.8)));
    image.parentElement.before(tools);
  }
}

const main = document.getElementById("main");
const status = document.getElementById("live");
if (main.hasAttribute("data-watched") && status) watch(main, status);
improve(main);
