const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
const client = Deno.createHttpClient({ poolIdleTimeout: idleMs }); // one for the whole program
// per request: fetch(url, { client })
// end

export async function request(method, url, body) {
  const response = await fetch(url, { method, body, client });
  await response.text();
  return response.status;
}
