// snippet
import superagent from "superagent";
// per request: await superagent.get(url)
// end

export const packages = ["superagent"];

export async function request(method, url, body) {
  const response = await superagent(method, url).send(body);
  return response.status;
}
