// Fetches the page again every two seconds and changes what is another now. Without it the page is whole.
"use strict";
(() => {
  const EVERY = 2000;
  const live = document.getElementById("live");
  const told = document.createElement("span");
  const pause = document.createElement("button");
  told.setAttribute("role", "status");
  pause.type = "button";
  pause.textContent = "Pause updates";
  live.append(told, " ", pause);
  // What those hear who do not see it: the verdict when it changes, and not every age on the page.
  const heard = document.createElement("p");
  heard.className = "heard";
  heard.setAttribute("role", "status");
  live.parentElement.append(heard);
  const raw = new Map();
  let paused = false, last = Date.now(), timer = 0, asking = false;

  const text = (pre) => pre.querySelector("code").textContent;

  function decorate(root) {
    for (const pre of root.querySelectorAll("pre[data-copy]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy: " + text(pre));
      pre.append(button);
    }
  }

  async function copy(button) {
    const pre = button.parentElement;
    try {
      await navigator.clipboard.writeText(text(pre));
    } catch {
      // Only pages of HTTPS and of this machine have the clipboard.
      getSelection().selectAllChildren(pre.querySelector("code"));
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  // What is marked or about to be copied is not taken away.
  function isMarked(section) {
    const selection = getSelection();
    return !selection.isCollapsed && selection.containsNode(section, true);
  }

  // The place of the keyboard in a section, so that it can be found again.
  function place(section) {
    const at = document.activeElement;
    if (!section.contains(at)) return null;
    if (at.className === "copy") {
      const label = at.getAttribute("aria-label");
      return () => [...section.querySelectorAll(".copy")].find((one) => one.getAttribute("aria-label") === label);
    }
    if (at.tagName === "SUMMARY") return () => section.querySelector("#" + at.parentElement.id + ">summary");
    const href = at.getAttribute("href");
    return () => [...section.querySelectorAll("a")].find((one) => one.getAttribute("href") === href);
  }

  function update(next) {
    if (document.title !== next.title) document.title = heard.textContent = next.title;
    const sections = new Set([...document.querySelectorAll("[data-live]"), ...next.querySelectorAll("[data-live]")].map((one) => one.id));
    let before = null;
    for (const id of sections) {
      const old = document.getElementById(id), fresh = next.getElementById(id);
      if (!old && fresh) {
        if (before) before.after(fresh); else document.getElementById("main").append(fresh);
        raw.set(id, fresh.innerHTML);
        decorate(fresh);
      } else if (old && !fresh) {
        old.remove();
      } else if (raw.get(id) !== fresh.innerHTML && !isMarked(old)) {
        raw.set(id, fresh.innerHTML);
        const open = [...old.querySelectorAll("details[open]")].map((one) => one.id);
        const focus = place(old);
        old.className = fresh.className;
        old.replaceChildren(...fresh.childNodes);
        for (const one of open) document.getElementById(one)?.setAttribute("open", "");
        decorate(old);
        focus?.()?.focus({ preventScroll: true });
      }
      before = document.getElementById(id) || before;
    }
  }

  function say(words, stale) {
    if (told.textContent !== words) told.textContent = words;
    document.body.classList.toggle("stale", stale);
  }

  async function refresh() {
    clearTimeout(timer);
    if (paused || asking || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!answer.ok) throw new Error("it answers " + answer.status);
      update(new DOMParser().parseFromString(await answer.text(), "text/html"));
      last = Date.now();
      say("Live", false);
    } catch (error) {
      const ago = Math.round((Date.now() - last) / 1000);
      say("This replica does not answer (" + error.message + "). What you see is " + ago + " s old.", true);
    }
    asking = false;
    timer = setTimeout(refresh, EVERY);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) copy(button);
  });
  document.addEventListener("visibilitychange", refresh);
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause updates";
    say(paused ? "Paused" : "Live", false);
    refresh();
  });
  for (const section of document.querySelectorAll("[data-live]")) raw.set(section.id, section.innerHTML);
  decorate(document);
  say("Live", false);
  timer = setTimeout(refresh, EVERY);
})();
