// snippet
import { request as send } from "undici";
// await request(url) with nothing set, the body read to its end
// end

export const packages = ["undici"];

export async function request(method, url, body) {
  const { statusCode, body: answer } = await send(url, { method, body });
  await answer.text();
  return statusCode;
}

export async function unread(url) {
  const { statusCode } = await send(url);
  return statusCode;
}
