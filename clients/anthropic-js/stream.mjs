// snippet
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: "..." }); // one for the whole program
// per request: for await (const event of await client.messages.create({ ..., stream: true }))
// end

import { speaking } from "./events.mjs";

export const packages = ["@anthropic-ai/sdk"];
client.fetch = speaking(() => 'event: message_stop\ndata: {"type": "message_stop"}\n\n');

export async function request(method, url) {
  const more = method === "POST" ? { body: {} } : {};
  const { data, response } = await client[method.toLowerCase()](url, { ...more, stream: true }).withResponse();
  for await (const _ of data);
  return response.status;
}
