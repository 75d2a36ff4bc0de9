// snippet
import ky from "ky";
// per request: await ky(url).text()
// end

export const packages = ["ky"];

export async function request(method, url, body) {
  const response = await ky(url, { method, body });
  await response.text();
  return response.status;
}
