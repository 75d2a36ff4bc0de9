// Runs one client program for the harness: node driver.mjs PROGRAM. The protocol is in clients/README.md.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const file = process.argv[2];
const program = await import(pathToFileURL(file));

// A library's version is what its installed package says.
function versionOf(name) {
  const path = join(dirname(file), "node_modules", name, "package.json");
  return JSON.parse(readFileSync(path)).version;
}

const { bun, deno, node } = process.versions;
const versions = bun ? { bun } : deno ? { deno } : { node };
for (const name of program.packages ?? []) versions[name] = versionOf(name);

const can = ["pause", "concurrent"];
if (!program.getOnly) can.push("post");
if (program.postOnly) can.push("post-only");
if (program.http2Only) can.push("http2-only");
if (!program.ownService) can.push("status");
if (program.unread) can.push("unread");

async function outcome(method, url, read) {
  try {
    return read
      ? await program.request(method, url, method === "POST" ? "ping" : undefined)
      : await program.unread(url);
  } catch (error) {
    // several libraries report a status as an error; it is a response all the same, unless the error is about a response of success
    const status = error.response?.status ?? error.response?.statusCode ?? error.status ?? error.$metadata?.httpStatusCode ?? error.statusCode;
    if (Number.isInteger(status) && status >= 300) return status;
    return String(error.code ?? error.cause?.code ?? error.name);
  }
}

console.log(JSON.stringify({ versions, can }));

for await (const line of createInterface({ input: process.stdin })) {
  const [count, order, method, body, url] = line.split(" ");
  const one = () => outcome(method, url, body === "read");
  let outcomes = [];
  if (order === "at-once") {
    outcomes = await Promise.all(Array.from({ length: Number(count) }, one));
  } else {
    for (let at = 0; at < Number(count); at++) outcomes.push(await one());
  }
  console.log(JSON.stringify(outcomes));
}
process.exit(0);
