const timeoutMs = Number(process.env.INTACT_TIMEOUT_MS ?? 10000);
// snippet
import { Agent, request as send } from "undici";

// to the header section, and between two reads of the body
const dispatcher = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
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
