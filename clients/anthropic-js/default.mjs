// snippet
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: "..." }); // one for the whole program
// end

export const packages = ["@anthropic-ai/sdk"];

const send = (method, url) => client[method.toLowerCase()](url, method === "POST" ? { body: {} } : {}).asResponse();

export async function request(method, url) {
  const response = await send(method, url);
  await response.text();
  return response.status;
}

export async function unread(url) {
  return (await send("GET", url)).status;
}
