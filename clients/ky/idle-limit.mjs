const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import ky from "ky";
import { Agent, fetch } from "undici";

const dispatcher = new Agent({ keepAliveTimeout: idleMs, keepAliveMaxTimeout: idleMs });
const client = ky.create({ fetch: (input, init) => fetch(input.url ?? input, { ...init, dispatcher, method: input.method ?? init?.method, body: input.body, duplex: "half" }) });
// end

export const packages = ["ky", "undici"];

export async function request(method, url, body) {
  const response = await client(url, { method, body });
  await response.text();
  return response.status;
}
