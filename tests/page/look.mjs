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

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
for (const scheme of ["light", "dark"]) {
  for (const width of [1100, 390]) {
    const name = `${state}-${scheme}${width < 1000 ? "-390" : ""}`;
    const page = await browser.newPage();
    page.on("pageerror", (error) => found.push(`${name}: script: ${error.message}`));
    page.on("console", (message) => message.type() === "error" && !message.text().includes("favicon") && found.push(`${name}: ${message.text()}`));
    page.on("request", (request) => request.url().startsWith(url) || request.url().startsWith("data:") || found.push(`${name}: asks ${request.url()}`));
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width, height: 760, deviceScaleFactor: 1 });
    await page.goto(url, { waitUntil: "networkidle0" });
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
    await page.close();
  }
}
await browser.close();

// The first key leads past the head; every command can be copied by keyboard.
async function keyboard(page, name) {
  await page.reload({ waitUntil: "networkidle0" });
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.className);
  if (first !== "skip") found.push(`${name}: the first Tab goes to ${first}`);
  const bare = await page.evaluate(() => [...document.querySelectorAll("pre[data-copy]")].filter((pre) => !pre.querySelector("button")).length);
  if (bare) found.push(`${name}: ${bare} commands have no button to copy them`);
}

// The page changes by itself, keeps what is open, and can be paused; without a script it shows the same.
async function live(page, name) {
  const before = await page.evaluate(() => {
    document.querySelector("#replicas details")?.setAttribute("open", "");
    return document.querySelector(".seen").textContent;
  });
  const changed = page.waitForFunction((before) => document.querySelector(".seen").textContent !== before, { timeout: 20000 }, before);
  await changed.catch(() => found.push(`${name}: does not update itself`));
  const state = await page.evaluate(() => ({
    told: document.getElementById("live").textContent,
    open: document.querySelector("#replicas details")?.open ?? true,
  }));
  if (state.told !== "Live Pause updates") found.push(`${name}: says ${state.told}`);
  if (!state.open) found.push(`${name}: an update closes what was open`);
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
