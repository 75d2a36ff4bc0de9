// snippet
import { Agent } from "undici";

const dispatcher = new Agent({ connections: 100 }); // one for the whole program
// per request: fetch(url, { dispatcher })
// end

export const packages = ["undici"];

export async function request(method, url, body) {
  const response = await fetch(url, { method, body, dispatcher });
  await response.text();
  return response.status;
}

export async function unread(url) {
  const response = await fetch(url, { dispatcher });
  return response.status;
}
