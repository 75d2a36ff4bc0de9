#!/usr/bin/env node
// Starts the program of this system's package. npm has installed that package as an optional dependency; nothing is downloaded here.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `intact-http-${process.platform}-${process.arch}`;
const isMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
// the static program runs on every Linux
const names = isMusl ? [`${name}-musl`] : [name, `${name}-musl`];
const program = process.platform === "win32" ? "intact.exe" : "intact";

function find() {
  for (const one of names) {
    try {
      return require.resolve(`${one}/${program}`);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  console.error(`intact: ${names.join(" and ")} not installed. Install without --omit=optional; other systems: build from source.`);
  process.exit(125);
}

const child = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
// the terminal sends SIGINT to the child too; the child reports, then ends, and so does this process
const isFromTerminal = (signal) => signal === "SIGINT" && process.stdin.isTTY;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => isFromTerminal(signal) || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`intact: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
