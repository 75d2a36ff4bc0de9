// snippet
import OpenAI from "openai";

const client = new OpenAI({ apiKey: "..." }); // one for the whole program
// end

export const packages = ["openai"];

const send = (method, url) => client[method.toLowerCase()](url, method === "POST" ? { body: {} } : {}).asResponse();

export async function request(method, url) {
  const response = await send(method, url);
  await response.text();
  return response.status;
}

export async function unread(url) {
  return (await send("GET", url)).status;
}
