const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import { Agent, interceptors, request as send } from "undici";

const dispatcher = new Agent({ keepAliveTimeout: idleMs, keepAliveMaxTimeout: idleMs })
  .compose(interceptors.retry({ maxRetries: 1 })); // GET, HEAD, OPTIONS, PUT, DELETE, TRACE
// per request: request(url, { dispatcher })
// end

export const packages = ["undici"];

export async function request(method, url, body) {
  const { statusCode, body: answer } = await send(url, { method, body, dispatcher });
  await answer.text();
  return statusCode;
}
