// snippet
import Anthropic from "@anthropic-ai/sdk";

// in the handler, for each call
const newClient = () => new Anthropic({ apiKey: "..." });
// end

export const packages = ["@anthropic-ai/sdk"];

const send = (method, url) => newClient()[method.toLowerCase()](url, method === "POST" ? { body: {} } : {}).asResponse();

export async function request(method, url) {
  const response = await send(method, url);
  await response.text();
  return response.status;
}

export async function unread(url) {
  return (await send("GET", url)).status;
}
