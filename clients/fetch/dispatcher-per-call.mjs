// snippet
import { Agent } from "undici";

// in the handler, for each call: fetch(url, { dispatcher: new Agent() })
// end

export const packages = ["undici"];

export async function request(method, url, body) {
  const response = await fetch(url, { method, body, dispatcher: new Agent() });
  await response.text();
  return response.status;
}
