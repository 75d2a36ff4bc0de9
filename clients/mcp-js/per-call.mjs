// snippet
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

async function open(url) {
  const client = new Client({ name: "...", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client; // in the handler, for each call
}
// end

import { Session, packages } from "./session.mjs";

export { packages };
export const postOnly = true;

export const request = (method, url) => new Session("json").ask(url);
