// snippet
import ky from "ky";

async function send(url, options) {
  const response = await ky(url, options); // with nothing set
  await response.text(); // the body is read to its end
  return response.status;
}
// end

export const packages = ["ky"];

export const request = (method, url, body) => send(url, { method, body });
