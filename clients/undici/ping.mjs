const timeoutMs = Number(process.env.INTACT_TIMEOUT_MS ?? 10000);
// snippet
import { Agent, request as send } from "undici";

// HTTP/2 over TLS: a PING without an answer until the next one is due ends the connection (8.13.1 and later)
const dispatcher = new Agent({ h2Options: { pingInterval: timeoutMs / 2 } });
// per request: request(url, { dispatcher })
// end

export const packages = ["undici"];

export async function request(method, url, body) {
  const { statusCode, body: answer } = await send(url, { method, body, dispatcher });
  await answer.text();
  return statusCode;
}

export async function unread(url) {
  const { statusCode } = await send(url, { dispatcher });
  return statusCode;
}
