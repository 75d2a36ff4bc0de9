// snippet
import superagent from "superagent";

const agent = superagent.agent(); // keeps cookies, not connections
// per request: await agent.get(url)
// end

export const packages = ["superagent"];

export async function request(method, url, body) {
  const response = await (method === "GET" ? agent.get(url) : agent.post(url).send(body));
  return response.status;
}
