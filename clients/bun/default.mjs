// snippet
async function send(url, options) {
  const response = await fetch(url, options); // with nothing set
  await response.text(); // the body is read to its end
  return response.status;
}
// end

export const request = (method, url, body) => send(url, { method, body });

export async function unread(url) {
  const response = await fetch(url);
  return response.status;
}
