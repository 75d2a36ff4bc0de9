const timeoutMs = Number(process.env.INTACT_TIMEOUT_MS ?? 10000);
// snippet
async function send(url, options) {
  // for the whole exchange, its body included
  const response = await fetch(url, { ...options, signal: AbortSignal.timeout(timeoutMs) });
  await response.text();
  return response.status;
}
// end

export const request = (method, url, body) => send(url, { method, body });

export async function unread(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
  return response.status;
}
