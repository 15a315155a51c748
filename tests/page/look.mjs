// Opens the status page in Chromium, light and dark, wide and 390 pixels wide: takes pictures, asks axe, and looks for what must be
// seen. Usage: node look.mjs KIT URL STATE DIRECTORY TEXT...; ends with 1 on any finding, after naming all of them.
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const [kit, url, state, directory, ...texts] = process.argv.slice(2);
const require = createRequire(join(kit, "node_modules", "x.js"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const MOST = 80 << 10;
const found = [];
// Errors of connections are what is looked for while there is none.
let offline = false;

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
for (const scheme of ["light", "dark"]) {
  for (const width of [1100, 390]) {
    const name = `${state}-${scheme}${width < 1000 ? "-390" : ""}`;
    const page = await browser.newPage();
    page.on("pageerror", (error) => found.push(`${name}: script: ${error.message}`));
    page.on("console", (message) => message.type() === "error" && !offline && !message.text().includes("favicon") && found.push(`${name}: ${message.text()}`));
    page.on("request", (request) => request.url().startsWith(url) || request.url().startsWith("data:") || found.push(`${name}: asks ${request.url()}`));
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width, height: 760, deviceScaleFactor: 1 });
    await page.goto(url);
    await says(page, name, "Live");
    const seen = await page.evaluate(() => document.body.innerText.replace(/\s+/g, " "));
    for (const text of texts) if (!seen.includes(text)) found.push(`${name}: does not show ${JSON.stringify(text)}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) found.push(`${name}: is ${wide} pixels wide`);
    const picture = join(directory, `${name}.png`);
    await page.screenshot({ path: picture, clip: { x: 0, y: 0, width, height: 760 } });
    execFileSync("pngquant", ["--force", "--ext", ".png", "--speed", "1", "64", picture]);
    if (statSync(picture).size > MOST) found.push(`${name}: the picture has ${statSync(picture).size} bytes`);
    // The policy of the page forbids other scripts than its own: this one comes by the driver, into a world of its own.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const { id, help, nodes } of violations) found.push(`${name}: axe ${id}: ${help}: ${nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
    await keyboard(page, name);
    await live(page, name);
    if (name === "calm-light") await lost(page, name);
    await withoutScript(page, name);
    await page.close();
  }
}
await browser.close();

// Waits until the page says this of its updates: a page with a stream of events never falls silent.
async function says(page, name, words) {
  const told = page.waitForFunction((words) => document.querySelector("#live [role=status]")?.textContent === words, { timeout: 40000 }, words);
  await told.catch(() => found.push(`${name}: does not say ${words}`));
}

// The first key leads past the head; every command can be copied by keyboard.
async function keyboard(page, name) {
  await page.reload();
  await says(page, name, "Live");
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.className);
  if (first !== "skip") found.push(`${name}: the first Tab goes to ${first}`);
  const bare = await page.evaluate(() => [...document.querySelectorAll("pre[data-copy]")].filter((pre) => !pre.querySelector("button")).length);
  if (bare) found.push(`${name}: ${bare} commands have no button to copy them`);
}

// The page changes by itself, keeps what is open, where the keyboard is and how far it is scrolled, and can be paused.
async function live(page, name) {
  const before = await page.evaluate(() => {
    document.querySelector("#replicas details")?.setAttribute("open", "");
    document.querySelector("#replicas summary")?.focus();
    scrollTo(0, 200);
    return { seen: document.querySelector(".seen").textContent, scrolled: scrollY };
  });
  const changed = page.waitForFunction((before) => document.querySelector(".seen").textContent !== before, { timeout: 30000 }, before.seen);
  await changed.catch(() => found.push(`${name}: does not update itself`));
  const state = await page.evaluate(() => ({
    told: document.getElementById("live").textContent,
    open: document.querySelector("#replicas details")?.open ?? true,
    focused: document.activeElement === document.querySelector("#replicas summary"),
    scrolled: scrollY,
    heard: document.querySelector(".heard").textContent,
  }));
  if (state.told !== "Live Pause updates") found.push(`${name}: says ${state.told}`);
  if (!state.open) found.push(`${name}: an update closes what was open`);
  if (!state.focused) found.push(`${name}: an update takes the keyboard away`);
  if (Math.abs(state.scrolled - before.scrolled) > 40) found.push(`${name}: an update scrolls from ${before.scrolled} to ${state.scrolled}`);
  if (state.heard) found.push(`${name}: an update without a change of state is read aloud: ${state.heard}`);
  await page.click("#live button");
  await says(page, name, "Paused");
  await page.click("#live button");
  await says(page, name, "Live");
}

// Without a connection the page says so, and how old it is; with one, it is live again.
async function lost(page, name) {
  offline = true;
  await page.setOfflineMode(true);
  await says(page, name, "Not live: connection lost");
  const stale = await page.evaluate(() => document.getElementById("live").textContent);
  if (!/What you see is \d+ s old/.test(stale)) found.push(`${name}: does not say how old it is: ${stale}`);
  await page.setOfflineMode(false);
  await says(page, name, "Live");
  offline = false;
}

// Without a script the page shows the same.
async function withoutScript(page, name) {
  await page.setJavaScriptEnabled(false);
  await page.reload();
  const bare = await page.evaluate(() => document.body.innerText.replace(/\s+/g, " "));
  for (const text of texts) if (text !== "Copy" && !bare.includes(text)) found.push(`${name}: without a script it does not show ${text}`);
}

if (found.length) {
  console.error(found.join("\n"));
  process.exit(1);
}
console.log(`${state}: four views, no finding`);
