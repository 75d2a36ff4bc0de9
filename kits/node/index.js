// Tests that fail when the code under test wastes HTTP connections. They run under `intact watch --windows -- npm test`, which
// records their connections and judges each window.

import { AssertionError } from "node:assert";
import { connect } from "node:net";

export class NotWatched extends Error {
  name = "NotWatched";
}

export async function expect(requirements, block) {
  const asked = typeof requirements === "string" || Array.isArray(requirements) ? { require: requirements } : requirements;
  const name = asked.name ?? "a window";
  const lines = [`name ${line(name)}`, ...[asked.require ?? []].flat().map((one) => `require ${line(one)}`)];
  if (asked.failOn !== undefined) lines.push(`fail-on ${line(asked.failOn)}`);
  const control = await Control.open();
  try {
    await control.request(`${lines.join("\n")}\n\n`, "open", name);
    const result = await block();
    await control.request("end\n", "passed", name);
    return result;
  } finally {
    control.close();
  }
}

// The connection to intact: a reply is a word on a line; except for `open`, a text follows until the end.
class Control {
  #socket;
  #text = "";
  #ended = false;
  #wake = () => {};

  static async open() {
    const path = process.env.INTACT_CONTROL;
    if (!path) {
      throw new NotWatched("INTACT_CONTROL is not set: run the tests as `intact watch --windows -- npm test`");
    }
    const socket = connect({ path });
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", (error) => reject(new NotWatched(`intact does not listen on ${path}: ${error.message}`)));
    });
    return new Control(socket);
  }

  constructor(socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      this.#text += text;
      this.#wake();
    });
    const end = () => {
      this.#ended = true;
      this.#wake();
    };
    socket.on("error", end).on("close", end);
  }

  async request(text, wanted, name) {
    this.#socket.write(text);
    await this.#until(() => this.#text.includes("\n"));
    const end = this.#text.indexOf("\n");
    const word = this.#text.slice(0, Math.max(end, 0));
    if (word === wanted) {
      this.#text = this.#text.slice(end + 1);
      return;
    }
    await this.#until(() => false);
    const rest = this.#text.slice(end + 1);
    if (word === "failed") {
      throw new AssertionError({ message: `intact: ${name} does not pass\n${rest}`, stackStartFn: expect });
    }
    throw new NotWatched(`intact: ${rest.trim() || "the connection to intact ended"}`);
  }

  async #until(condition) {
    while (!condition() && !this.#ended) {
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }

  close() {
    this.#socket.destroy();
  }
}

function line(text) {
  return String(text).split(/\s+/).join(" ").trim();
}
