// Looks at pages in Chromium: node look.mjs BROWSER PAGES SHOTS. See run.py.
import { createRequire } from "node:module";
import { statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [browserDir, pages, shots] = process.argv.slice(2);
const require = createRequire(join(browserDir, "package.json"));
const { chromium: playwright } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
const sparticuz = (await import(pathToFileURL(require.resolve("@sparticuz/chromium")))).default;

const counts = { passed: 0, failed: 0, skipped: 0 };
const tell = (word, name, reason) => {
  counts[word] += 1;
  console.log(`${word}: ${name}${reason ? `: ${reason}` : ""}`);
};
const check = async (name, look) => {
  try {
    const wrong = await look();
    tell(wrong ? "failed" : "passed", name, wrong);
  } catch (error) {
    tell("failed", name, String(error).split("\n")[0]);
  }
};

let browser;
try {
  browser = await playwright.launch({ executablePath: await sparticuz.executablePath(), args: ["--no-sandbox"] });
} catch (error) {
  tell("skipped", "pages in a browser", `Chromium does not start: ${String(error).slice(0, 300)}`);
}

const url = (name) => pathToFileURL(join(pages, name)).href;

/// A page of its own, and what it asked for beside itself.
async function open(name, width, scheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, bypassCSP: false });
  const page = await context.newPage();
  const asked = [];
  const said = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("dialog", (dialog) => {
    said.push(`dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(url(name));
  return { context, page, asked, said };
}

/// The violations that axe-core finds. It is run past the page's own rules, which allow no script.
async function violations(name, width, scheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, bypassCSP: true });
  const page = await context.newPage();
  await page.goto(url(name));
  await page.addScriptTag({ path: axe });
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  await context.close();
  return found.violations.map((one) => `${one.id} (${one.nodes.length}): ${one.nodes[0].html.slice(0, 160)}`).join("; ");
}

/// Where the lines of the first changed block of a file with two sides stand.
const places = () => {
  const block = document.querySelector(".two .b:has(.d):has(.a)");
  const box = (line) => block.querySelector(line).getBoundingClientRect();
  const [old, now] = [box(".d"), box(".a")];
  return { beside: Math.abs(old.top - now.top) < 2 && now.left >= old.right - 1, below: now.top >= old.bottom - 1 };
};

async function looks(width, scheme) {
  const of = `${width} px, ${scheme}`;
  const { context, page, asked, said } = await open("page.html", width, scheme);
  await check(`${of}: nothing is loaded, run or complained of`, async () => {
    const others = asked.filter((one) => one !== url("page.html"));
    return [...others, ...said].join(", ");
  });
  await check(`${of}: lines stand ${width >= 1100 ? "side by side" : "below each other"}`, async () => {
    const { beside, below } = await page.evaluate(places);
    return (width >= 1100 ? beside && !below : below && !beside) ? "" : JSON.stringify({ beside, below });
  });
  await check(`${of}: the page is no wider than the window`, async () => {
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    return wide > room ? `${wide} of ${room} px` : "";
  });
  await page.screenshot({ path: join(shots, `page-${width}-${scheme}.png`), fullPage: true });
  await page.screenshot({ path: join(shots, `page-${width}-${scheme}-top.png`) });
  await context.close();
  await check(`${of}: axe-core finds nothing`, () => violations("page.html", width, scheme));
}

async function keys() {
  const { context, page } = await open("page.html", 1400, "light");
  await check("the keyboard unfolds and folds a file", async () => {
    const summary = page.locator("main > section > details:not([open]) > summary").first();
    const file = summary.locator("xpath=..");
    await summary.evaluate((at) => at.setAttribute("data-test", ""));
    await page.keyboard.press("Tab");
    const reached = async () => page.evaluate(() => document.activeElement.hasAttribute("data-test"));
    for (let n = 0; n < 200 && !(await reached()); n += 1) await page.keyboard.press("Tab");
    if (!(await reached())) return "Tab does not reach it";
    await page.keyboard.press("Enter");
    if ((await page.locator("summary[data-test]").evaluate((at) => at.parentElement.open)) !== true) return "Enter does not unfold it";
    await page.keyboard.press("Space");
    return (await page.locator("summary[data-test]").evaluate((at) => at.parentElement.open)) ? "Space does not fold it" : void file;
  });
  await check("a link of the contents unfolds what it leads to", async () => {
    const id = await page.evaluate(() => document.querySelector("main > section > details:not([open]) > div").id);
    await page.locator(`.contents a[href="#${id}"]`).click();
    return (await page.evaluate((id) => document.getElementById(id).parentElement.open, id)) ? "" : `#${id} stays folded`;
  });
  await context.close();
}

async function paper() {
  const { context, page } = await open("page.html", 794, "dark");
  await check("paper shows what is folded, dark on white", async () => {
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    const [height, color] = await page.evaluate(() => {
      const line = document.querySelector("main > section > details:not([open]) .lines tbody:last-child tr:last-child");
      return [line.getBoundingClientRect().height, getComputedStyle(document.body).backgroundColor];
    });
    if (height === 0) return "a folded line has no height";
    return color === "rgb(255, 255, 255)" ? "" : `the paper is ${color}`;
  });
  await check("it prints", async () => {
    const file = join(shots, "page.pdf");
    await page.pdf({ path: file, format: "A4" });
    return statSync(file).size > 10_000 ? "" : "the settings file is empty";
  });
  await context.close();
}

async function many() {
  const bytes = statSync(join(pages, "many.html")).size;
  const began = Date.now();
  const { context, page } = await open("many.html", 1400, "light");
  const opened = Date.now() - began;
  await check("a page of 5,000 files opens and scrolls", async () => {
    const files = await page.locator("main > section > details").count();
    if (files < 5000) return `${files} files`;
    const start = Date.now();
    for (const part of [0.25, 0.5, 0.75, 1]) {
      await page.evaluate((part) => window.scrollTo(0, document.documentElement.scrollHeight * part), part);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
    const scrolled = Date.now() - start;
    console.log(`  ${(bytes / 1e6).toFixed(1)} MB, opened in ${opened} ms, scrolled through in ${scrolled} ms`);
    return opened > 20_000 || scrolled > 20_000 ? "too slow" : "";
  });
  await check("all that is deleted is listed and open", async () => {
    const [listed, open] = await page.evaluate(() => [
      [...document.querySelectorAll("nav > .contents tbody tr")].filter((row) => row.getBoundingClientRect().height > 0).length,
      [...document.querySelectorAll("main > section > details[open]")].filter((file) => file.querySelector(".k.deleted")).length,
    ]);
    return listed === 1001 && open === 1001 ? "" : `${listed} listed, ${open} open`;
  });
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: join(shots, "many-top.png") });
  await context.close();
}

if (browser) {
  for (const width of [380, 1400]) for (const scheme of ["light", "dark"]) await looks(width, scheme);
  await keys();
  await paper();
  await many();
  await browser.close();
}
console.log(Object.entries(counts).map(([word, count]) => `${count} ${word}`).join(", "));
process.exit(counts.failed ? 1 : 0);
