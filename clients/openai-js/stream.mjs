// snippet
import OpenAI from "openai";

const client = new OpenAI({ apiKey: "..." }); // one for the whole program
// per request: for await (const event of await client.chat.completions.create({ ..., stream: true }))
// end

import { speaking } from "./events.mjs";

export const packages = ["openai"];
client.fetch = speaking(() => 'data: {"choices": []}\n\ndata: [DONE]\n\n');

export async function request(method, url) {
  const more = method === "POST" ? { body: {} } : {};
  const { data, response } = await client[method.toLowerCase()](url, { ...more, stream: true }).withResponse();
  for await (const _ of data);
  return response.status;
}
