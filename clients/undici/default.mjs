// snippet
import { request as send } from "undici";

async function fetchStatus(url, options) {
  const { statusCode, body } = await send(url, options); // with nothing set
  await body.text(); // the body is read to its end
  return statusCode;
}
// end

export const packages = ["undici"];

export const request = (method, url, body) => fetchStatus(url, { method, body });

export async function unread(url) {
  const { statusCode } = await send(url);
  return statusCode;
}
