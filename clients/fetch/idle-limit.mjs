const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import { Agent, fetch, setGlobalDispatcher } from "undici";

// undici as a package: Node's own copy cannot be imported
setGlobalDispatcher(new Agent({ keepAliveTimeout: idleMs, keepAliveMaxTimeout: idleMs }));
// end

export const packages = ["undici"];

export async function request(method, url, body) {
  const response = await fetch(url, { method, body });
  await response.text();
  return response.status;
}

export async function unread(url) {
  const response = await fetch(url);
  return response.status;
}
