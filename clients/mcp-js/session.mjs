// A session of MCP with the test server, whose answers are made those of such a server.
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { speaking } from "./events.mjs";

export const packages = ["@modelcontextprotocol/sdk"];
let last = 0;

function answer({ body }) {
  return JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(body).id, result: {} });
}

const kinds = {
  json: speaking(answer, "application/json"),
  stream: speaking((init) => `event: message\ndata: ${answer(init)}\n\n`),
};

export class Session {
  waiting = new Map();

  constructor(kind) {
    // each message names the URL that the harness wants; a session has one
    const fetch = (_, init) => kinds[kind](JSON.parse(init.body).params.url, init);
    this.transport = new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), { fetch });
    this.transport.onmessage = ({ id }) => this.waiting.get(id)();
  }

  async ask(url) {
    const id = ++last;
    const answered = new Promise((resolve) => this.waiting.set(id, resolve));
    try {
      await this.transport.send({ jsonrpc: "2.0", id, method: "ping", params: { url } });
    } catch (error) {
      if (error.code >= 300) return error.code;
      throw error;
    }
    await answered;
    return 200;
  }
}
