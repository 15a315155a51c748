// Hears when the page shows something else, fetches it, and changes what is another now. Without it the page is whole.
"use strict";
(() => {
  // Milliseconds until a stream is opened again, and without a word in one that is open: every 15 seconds it says that it is there.
  const AGAIN = 5000, SILENT = 40000;
  const live = document.getElementById("live");
  const told = document.createElement("span");
  const detail = document.createElement("span");
  const pause = document.createElement("button");
  told.setAttribute("role", "status");
  pause.type = "button";
  pause.textContent = "Pause updates";
  live.append(told, detail, " ", pause);
  // What those hear who do not see it: the verdict when it changes, and not every age on the page.
  const heard = document.createElement("p");
  heard.className = "heard";
  heard.setAttribute("role", "status");
  live.parentElement.append(heard);
  const raw = new Map();
  // What is shown, as events number it.
  let version = document.getElementById("main").dataset.version;
  let stream = null, paused = false, last = Date.now(), timer = 0, asking = false, again = false;

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

  // The words are read aloud when they are others, the detail is not.
  function say(words, more) {
    if (told.textContent !== words) told.textContent = words;
    detail.textContent = more || "";
    document.body.classList.toggle("stale", Boolean(more));
  }

  // Fetches the page; asked for once more meanwhile, once more.
  async function refresh() {
    again = asking;
    if (asking) return;
    asking = true;
    do {
      again = false;
      try {
        const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(10000) });
        if (!answer.ok) throw new Error("it answers " + answer.status);
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        version = next.getElementById("main").dataset.version;
        update(next);
        last = Date.now();
        if (!paused) say(stream?.readyState === EventSource.OPEN ? "Live" : "Not live: updated every 5 s");
      } catch (error) {
        const ago = Math.round((Date.now() - last) / 1000);
        if (!paused) say("Not live: connection lost", " (" + error.message + "). What you see is " + ago + " s old.");
      }
    } while (again);
    asking = false;
  }

  function close() {
    clearTimeout(timer);
    stream?.close();
    stream = null;
  }

  function open() {
    close();
    if (paused || document.hidden) return;
    stream = new EventSource("events");
    const hear = (kind, then) => stream.addEventListener(kind, (event) => {
      clearTimeout(timer);
      timer = setTimeout(lost, SILENT);
      then(event.data);
    });
    hear("change", (shown) => { if (shown === version) say("Live"); else refresh(); });
    // What is shown is the same but for ages.
    hear("alive", refresh);
    hear("end", open);
    stream.addEventListener("error", lost);
    timer = setTimeout(lost, SILENT);
  }

  // There is no stream, or it is refused: the page is fetched until there is one.
  function lost() {
    close();
    timer = setTimeout(open, AGAIN);
    refresh();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) copy(button);
  });
  document.addEventListener("visibilitychange", () => {
    open();
    if (stream) refresh();
  });
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause updates";
    if (paused) say("Paused"); else refresh();
    open();
  });
  for (const section of document.querySelectorAll("[data-live]")) raw.set(section.id, section.innerHTML);
  decorate(document);
  open();
})();
