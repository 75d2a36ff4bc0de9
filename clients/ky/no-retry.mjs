// snippet
import ky from "ky";

const client = ky.create({ retry: 0 });
// end

export const packages = ["ky"];

export async function request(method, url, body) {
  const response = await client(url, { method, body });
  await response.text();
  return response.status;
}
