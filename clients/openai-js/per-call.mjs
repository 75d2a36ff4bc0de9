// snippet
import OpenAI from "openai";

// in the handler, for each call
const newClient = () => new OpenAI({ apiKey: "..." });
// end

export const packages = ["openai"];

const send = (method, url) => newClient()[method.toLowerCase()](url, method === "POST" ? { body: {} } : {}).asResponse();

export async function request(method, url) {
  const response = await send(method, url);
  await response.text();
  return response.status;
}

export async function unread(url) {
  return (await send("GET", url)).status;
}
